"""What the reconciler's tests on the real server share: a bridge, an organisation, syncs."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from han_solo.bridge.lister import list_live_tools
from han_solo.letta.gateway import LettaGateway
from han_solo.letta.views import AgentView, ToolView
from han_solo.reconcile.ensure import Outcome, ensure_ren_tools, make_plan
from han_solo.reconcile.model import Consent
from han_solo.reconcile.plan import Plan
from han_solo.reconcile.services import ReconcileServices
from han_solo.reconcile.spec import AgentSpec
from han_solo.registry import ListedTool
from tests.contract.actor import ActorTransport, open_gateway
from tests.contract.mcp_stub import McpStub, StubTool, serve
from tests.integration.store_fixtures import migrated
from tests.unit.reconcile_world import SPEC, listed

SERVER = "han-solo"
TOKEN = "hs_test_token"


def build_tools(count: int, words: str = "Does it.") -> tuple[ListedTool, ...]:
    return tuple(listed(f"tool_{n:02}", words, a="string") for n in range(count))


@dataclass
class Lab:
    """One organisation on the real Letta, its bridge, and syncs of one agent."""

    services: ReconcileServices
    stub: McpStub
    http: httpx.AsyncClient
    transport: ActorTransport

    @property
    def gateway(self) -> LettaGateway:
        gateway = self.services.gateway
        assert isinstance(gateway, LettaGateway)
        return gateway

    def use(self, **changes: Any) -> None:
        self.services = dataclasses.replace(self.services, **changes)

    def declare(self, tools: tuple[ListedTool, ...]) -> None:
        """Change the registry, and restart the bridge from it."""
        self.use(declared=tools)
        self.list_at_bridge(tools)

    def list_at_bridge(self, tools: tuple[ListedTool, ...]) -> None:
        self.stub.tools = [StubTool(t.name, t.description, t.input_schema) for t in tools]

    async def sync(self, **options: Any) -> Outcome:
        return await ensure_ren_tools(self.services, **options)

    async def plan(self, *consent: Consent) -> Plan:
        return await make_plan(self.services, await self.agent_id(), consent=consent)

    async def agent_id(self) -> str:
        stored = await self.services.known.load_agent_id()
        assert stored
        return stored

    async def agent(self) -> AgentView:
        return await self.gateway.fetch_agent(await self.agent_id())

    async def attached(self) -> dict[str, str]:
        """Return the ids of the attached tools, by name."""
        return {tool.name: tool.id for tool in (await self.agent()).tools}

    async def tools(self) -> dict[str, ToolView]:
        return {tool.name: tool for tool in await self.gateway.fetch_tools()}

    async def ours(self) -> dict[str, ToolView]:
        return {n: tool for n, tool in (await self.tools()).items() if tool.mcp_server == SERVER}

    async def make_custom_tool(self, name: str) -> str:
        """Make a Python tool of somebody's."""
        source = f'def {name}(a: str) -> str:\n    """Theirs.\n\n    Args:\n        a: x\n    """\n'
        source += "    return a\n"
        made = await self.http.post("/v1/tools/", json={"source_code": source})
        made.raise_for_status()
        tool_id: str = made.json()["id"]
        return tool_id


@contextlib.asynccontextmanager
async def open_lab(
    letta_server: Any,
    actor: Mapping[str, str],
    database_url: str,
    *,
    tools: tuple[ListedTool, ...] = (),
    spec: AgentSpec = SPEC,
    port: int = 0,
) -> AsyncIterator[Lab]:
    """Open a lab with a running bridge that lists ``tools``, which are declared too."""
    gateway, transport = open_gateway(letta_server.base_url, actor)
    stub = McpStub(token=TOKEN)
    http = httpx.AsyncClient(base_url=letta_server.base_url, headers=actor, timeout=60)
    async with (
        gateway,
        http,
        migrated(database_url) as db,
        serve(stub, letta_server.bridge_ports[port]),
    ):
        services = ReconcileServices(
            gateway=gateway,
            db=db,
            spec=spec,
            declared=tools,
            bridge_name=SERVER,
            bridge_url=stub.url,
            local_url=stub.url,
            read_token=lambda: TOKEN,
            list_live=list_live_tools,
        )
        lab = Lab(services, stub, http, transport)
        lab.declare(tools)
        yield lab
