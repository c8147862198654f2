"""One set of rules for the real Letta and the in-memory one that the reconciler's tests use.

What a test concludes from the in-memory Letta is worth as much as its likeness to the real one.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from han_solo.errors import AgentGone, LettaConflict, LettaNotFound, LettaUnavailable
from han_solo.reconcile.fingerprint import fingerprint_listed, fingerprint_stored
from han_solo.reconcile.gateway import Gateway
from han_solo.registry import ListedTool
from tests.contract.actor import open_gateway
from tests.contract.mcp_stub import McpStub, StubTool, serve
from tests.unit.fake_letta import Bridge, FakeLetta
from tests.unit.reconcile_world import listed

MODEL = "openai-proxy/rehearsal"
TOKEN = "hs_token"


@dataclass
class Place:
    """A Letta, and two bridges that list what they are told to."""

    gateway: Gateway
    url: str
    other_url: str

    def list(self, *tools: ListedTool, token: str | None = None) -> None:
        raise NotImplementedError

    def list_at_other(self, *tools: ListedTool) -> None:
        raise NotImplementedError

    async def delete_tool(self, name: str) -> None:
        raise NotImplementedError

    async def ids(self) -> dict[str, str]:
        return {tool.name: tool.id for tool in await self.gateway.fetch_tools() if tool.mcp_server}

    async def make_agent(self) -> str:
        return (await self.gateway.create_agent(name="ren", model=MODEL, tags=("t",))).id


@dataclass
class FakePlace(Place):
    letta: FakeLetta

    def list(self, *tools: ListedTool, token: str | None = None) -> None:
        self.letta.bridges[self.url] = Bridge(tools, token)

    def list_at_other(self, *tools: ListedTool) -> None:
        self.letta.bridges[self.other_url] = Bridge(tools)

    async def delete_tool(self, name: str) -> None:
        self.letta.delete_tool(name)


@dataclass
class RealPlace(Place):
    stub: McpStub
    other: McpStub
    http: httpx.AsyncClient

    def list(self, *tools: ListedTool, token: str | None = None) -> None:
        self.stub.tools = [StubTool(t.name, t.description, t.input_schema) for t in tools]
        self.stub.token = token

    def list_at_other(self, *tools: ListedTool) -> None:
        self.other.tools = [StubTool(t.name, t.description, t.input_schema) for t in tools]

    async def delete_tool(self, name: str) -> None:
        (await self.http.delete(f"/v1/tools/{(await self.ids())[name]}")).raise_for_status()


@contextlib.asynccontextmanager
async def _real(server: Any, actor: Mapping[str, str]) -> AsyncIterator[RealPlace]:
    gateway, _ = open_gateway(server.base_url, actor)
    stub, other = McpStub(), McpStub()
    async with (
        gateway,
        httpx.AsyncClient(base_url=server.base_url, headers=actor, timeout=60) as http,
        serve(stub, server.bridge_ports[5]),
        serve(other, server.bridge_ports[6]),
    ):
        yield RealPlace(gateway, stub.url, other.url, stub, other, http)


ALPHA, BETA = listed("alpha", a="string"), listed("beta")


class GatewayRules:
    """What both do."""

    async def test_registering_a_server_registers_what_it_lists_and_attaches_none(
        self,
        place: Place,
    ) -> None:
        agent = await place.make_agent()
        place.list(ALPHA, BETA, token=TOKEN)

        row = await place.gateway.register_mcp_server("han-solo", place.url, TOKEN)

        assert (row.name, row.url, row.token) == ("han-solo", place.url, TOKEN)
        assert set(await place.ids()) == {"alpha", "beta"}
        assert (await place.gateway.fetch_agent(agent)).tools == ()

    @pytest.mark.parametrize("token", ["another", None])
    async def test_a_bridge_that_refuses_or_lists_nothing_registers_well_with_no_tools(
        self, place: Place, token: str | None
    ) -> None:
        place.list(*((ALPHA,) if token else ()), token=token)

        await place.gateway.register_mcp_server("han-solo", place.url, TOKEN)

        assert await place.ids() == {}

    async def test_what_is_stored_of_a_tool_has_the_fingerprint_of_what_was_listed(
        self,
        place: Place,
    ) -> None:
        place.list(ALPHA)
        await place.gateway.register_mcp_server("han-solo", place.url, None)

        (stored,) = [tool for tool in await place.gateway.fetch_tools() if tool.mcp_server]

        assert fingerprint_stored(stored) == fingerprint_listed(ALPHA)

    async def test_a_name_is_taken_over_by_the_last_writer_under_its_old_id(
        self, place: Place
    ) -> None:
        place.list_at_other(ALPHA)
        await place.gateway.register_mcp_server("other", place.other_url, None)
        before = await place.ids()
        place.list(ALPHA)

        await place.gateway.register_mcp_server("han-solo", place.url, None)

        (tool,) = [tool for tool in await place.gateway.fetch_tools() if tool.name == "alpha"]
        assert (tool.id, tool.mcp_server) == (before["alpha"], "han-solo")

    async def test_a_second_server_of_the_name_is_a_conflict(self, place: Place) -> None:
        await place.gateway.register_mcp_server("han-solo", place.url, None)

        with pytest.raises(LettaConflict):
            await place.gateway.register_mcp_server("han-solo", place.other_url, None)

    async def test_registering_one_tool_anew_keeps_its_id_and_attachment(
        self, place: Place
    ) -> None:
        agent = await place.make_agent()
        place.list(ALPHA, BETA)
        await place.gateway.register_mcp_server("han-solo", place.url, None)
        before = await place.ids()
        await place.gateway.attach_tool(agent, before["alpha"])
        changed = listed("alpha", "Better.", b="integer")
        place.list(changed, BETA)

        made = await place.gateway.register_tool("han-solo", "alpha")

        assert made.id == before["alpha"]
        assert await place.ids() == before
        (tool,) = (await place.gateway.fetch_agent(agent)).tools
        assert (tool.id, tool.description) == (before["alpha"], "Better.")
        assert fingerprint_stored(tool) == fingerprint_listed(changed)

    async def test_a_tool_that_is_not_listed_can_not_be_registered(self, place: Place) -> None:
        place.list(ALPHA)
        await place.gateway.register_mcp_server("han-solo", place.url, None)

        with pytest.raises(LettaUnavailable):
            await place.gateway.register_tool("han-solo", "beta")

    async def test_a_deleted_tool_is_detached_and_comes_back_under_another_id(
        self, place: Place
    ) -> None:
        agent = await place.make_agent()
        place.list(ALPHA)
        await place.gateway.register_mcp_server("han-solo", place.url, None)
        before = (await place.ids())["alpha"]
        await place.gateway.attach_tool(agent, before)

        await place.delete_tool("alpha")
        assert (await place.gateway.fetch_agent(agent)).tools == ()

        made = await place.gateway.register_tool("han-solo", "alpha")
        assert made.id != before
        assert (await place.gateway.fetch_agent(agent)).tools == ()

    async def test_attaching_and_detaching_twice_is_as_once(self, place: Place) -> None:
        agent = await place.make_agent()
        place.list(ALPHA)
        await place.gateway.register_mcp_server("han-solo", place.url, None)
        tool = (await place.ids())["alpha"]

        for _ in range(2):
            await place.gateway.attach_tool(agent, tool)
        assert [t.id for t in (await place.gateway.fetch_agent(agent)).tools] == [tool]

        for _ in range(2):
            await place.gateway.detach_tool(agent, tool)
        assert (await place.gateway.fetch_agent(agent)).tools == ()
        assert await place.ids() == {"alpha": tool}

    async def test_a_tool_that_is_not_there_can_not_be_attached(self, place: Place) -> None:
        agent = await place.make_agent()

        with pytest.raises(LettaNotFound):
            await place.gateway.attach_tool(agent, "tool-00000000-0000-4000-8000-000000000000")

    async def test_a_changed_address_and_token_are_kept_and_tools_are_as_they_were(
        self,
        place: Place,
    ) -> None:
        place.list(ALPHA)
        await place.gateway.register_mcp_server("han-solo", place.url, "old")
        before = await place.ids()

        await place.gateway.update_mcp_server("han-solo", url=place.other_url, token="new")

        (row,) = await place.gateway.fetch_mcp_servers()
        assert (row.url, row.token) == (place.other_url, "new")
        assert await place.ids() == before

    async def test_a_second_block_of_a_label_is_a_conflict(self, place: Place) -> None:
        agent = await place.make_agent()
        first, second = [
            await place.gateway.create_block("notes", value, limit=100) for value in ("a", "b")
        ]
        await place.gateway.attach_block(agent, first.id)

        with pytest.raises(LettaConflict):
            await place.gateway.attach_block(agent, second.id)

        (block,) = (await place.gateway.fetch_agent(agent)).blocks
        assert (block.id, block.value, block.limit) == (first.id, "a", 100)

    async def test_an_agent_that_is_not_there_is_gone(self, place: Place) -> None:
        with pytest.raises(AgentGone):
            await place.gateway.fetch_agent("agent-00000000-0000-4000-8000-000000000000")

    async def test_a_new_agent_has_its_model_and_nothing_of_lettas_own(self, place: Place) -> None:
        agent = await place.gateway.fetch_agent(await place.make_agent())

        assert agent.llm_config["handle"] == MODEL
        assert agent.llm_config["enable_reasoner"] is False
        assert (agent.tools, agent.blocks, agent.tags) == ((), (), ("t",))


class TestTheLettaInMemory(GatewayRules):
    @pytest.fixture
    def place(self) -> Place:
        letta = FakeLetta()
        return FakePlace(letta, "http://a.test/mcp", "http://b.test/mcp", letta)


class TestTheRealLetta(GatewayRules):
    @pytest.fixture
    async def place(
        self, letta_server: Any, letta_actor: Mapping[str, str]
    ) -> AsyncIterator[Place]:
        async with _real(letta_server, letta_actor) as opened:
            yield opened
