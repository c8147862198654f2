"""What a sync of 70 tools costs on a real Letta and the real bridge, beside the bare minimum.

The bare minimum is one read of the agent and one list of the tools in the same run, through the
same client and at the same time. A sync without drift makes four requests: three of Letta (agent,
tools, MCP servers) and one of the bridge (its own list).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from han_solo import MemoryContext, tool
from han_solo.bridge import lister
from han_solo.bridge.letta import Letta
from han_solo.declare import ToolSpec, spec_of
from han_solo.registry import Registry, build_registry
from tests.contract.actor import ActorTransport, open_gateway
from tests.integration.bridge_fixtures import RunningBridge, running
from tests.servers import LettaServer, fresh_database, make_actor, open_directory, run_all

from .harness import Goal, compare_ms

TOOLS = 70
REPEATS = 40
SPEC = """
[agent]
name = "bench"
person = "Scott"

[model]
handle = "openai-proxy/rehearsal"
"""
GOALS = {
    "noop_requests": Goal(max=4),
    "noop_ratio": Goal(max=2.0),
    "first_registrations": Goal(max=1),
    "first_attaches": Goal(max=TOOLS),
    "changed_tool_calls": Goal(max=2),
}


async def measure(_options: Any) -> dict[str, float]:
    """Measure the first sync, syncs without drift, and a changed tool."""
    async with run_all() as (postgres, letta), fresh_database(postgres) as url:
        with open_directory() as folder:
            (folder / "agent.toml").write_text(SPEC, encoding="utf-8")
            lab = Lab(folder, letta, await make_actor(letta), url)
            return await _measure(lab)


class Lab:
    """A bridge that can be stopped and started with other tools, and what it sends counted."""

    def __init__(
        self, folder: Path, letta: LettaServer, actor: dict[str, str], database_url: str
    ) -> None:
        self._folder = folder
        self._letta = letta
        self._actor = actor
        self._database_url = database_url
        self.transport: ActorTransport | None = None
        self.asked_of_bridge = 0

    @asynccontextmanager
    async def bridge(self, registry: Registry) -> AsyncIterator[RunningBridge]:
        """Run the bridge until the agent is in sync."""
        gateway, self.transport = open_gateway(self._letta.base_url, self._actor)
        blocks, _ = open_gateway(self._letta.base_url, self._actor)
        ask = lister.list_live_tools

        async def count(*arguments: Any, **options: Any) -> Any:
            self.asked_of_bridge += 1
            return await ask(*arguments, **options)

        with mock.patch("han_solo.bridge.sync.list_live_tools", count):
            async with running(
                self._folder,
                registry,
                letta=Letta(gateway=gateway, blocks=blocks),
                database_url=self._database_url,
                agent_name="bench",
                agent_spec=self._folder / "agent.toml",
                bridge_port=self._letta.bridge_ports[0],
                letta_base_url=self._letta.base_url,
                letta_password=self._letta.password,
            ) as bridge:
                await bridge.wait_health(lambda found: found["sync"]["tools_in_sync"])
                yield bridge

    def take_sent(self) -> list[tuple[str, str]]:
        """Return what was sent to Letta since the last time, and forget it."""
        assert self.transport
        sent = list(self.transport.sent)
        self.transport.sent.clear()
        self.asked_of_bridge = 0
        return sent


async def _measure(lab: Lab) -> dict[str, float]:
    began = time.perf_counter()
    async with lab.bridge(build_tools()) as bridge:
        first_s = time.perf_counter() - began
        first = lab.take_sent()
        await bridge.backend.sync_tools()
        requests = lab.asked_of_bridge
        noop = lab.take_sent()
        requests += len(noop)
        spent = await compare_ms(
            {"bare": await _bare(bridge), "noop": bridge.backend.sync_tools}, repeats=REPEATS
        )
    async with lab.bridge(build_tools(changed=1)):
        changed = lab.take_sent()
    return {
        "noop_requests": requests,
        "noop_ms": spent["noop"],
        "bare_ms": spent["bare"],
        "noop_ratio": spent["noop"] / spent["bare"],
        "first_s": first_s,
        "first_registrations": sum(path == "/v1/mcp-servers/" for m, path in first if m == "POST"),
        "first_attaches": sum("/tools/attach/" in path for _, path in first),
        "changed_tool_calls": len(changed) - len(noop),
    }


async def _bare(bridge: RunningBridge) -> Callable[[], Awaitable[object]]:
    gateway = bridge.backend._letta.gateway
    info = await bridge.client.get("/api/admin/agent-info", headers=bridge.headers())
    agent_id = info.raise_for_status().json()["id"]

    async def bare() -> None:
        await asyncio.gather(gateway.fetch_agent(agent_id), gateway.fetch_tools())

    return bare


def build_tools(*, changed: int = 0) -> Registry:
    """Declare the tools; so many of them with another docstring."""
    return build_registry(_declare(n, "otherwise" if n < changed else "so") for n in range(TOOLS))


def _declare(number: int, how: str) -> ToolSpec:
    async def function(context: MemoryContext, text: str, limit: int = 20) -> str:
        return f"{context.principal.name} {text} {limit}"

    function.__name__ = f"bench_tool_{number:02}"
    function.__doc__ = (
        f"Do it {how}, the way number {number} is done; use it when that is asked for.\n\n"
        "Args:\n    text: what is to be done, in a sentence.\n    limit: how often, at most 50.\n"
    )
    return spec_of(tool(effect="read")(function))
