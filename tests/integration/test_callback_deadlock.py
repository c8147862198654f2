"""The two-day deadlock: a tool that calls back into the queue of the agent that waits for it.

First what it does on a real server where it is allowed, then that it is refused, and that two
hundred tool calls without a gap do no harm.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from han_solo import MemoryContext, tool
from han_solo.declare import spec_of
from han_solo.letta.gateway import LettaGateway
from han_solo.loader import load_registry
from han_solo.registry import build_registry
from han_solo.turns.service import Turns
from tests.contract.mcp_stub import McpStub, StubTool, serve
from tests.integration.bridge_fixtures import connect_letta, running
from tests.integration.store_fixtures import migrated
from tests.integration.turn_fixtures import World, open_world, script

SPEC = """
[agent]
name = "{name}"
person = "Scott"

[model]
handle = "openai-proxy/rehearsal"

[[blocks]]
label = "notes"
limit = 20000
seed = "nothing yet"
"""


@pytest.fixture
async def world(
    letta_server: Any, letta_actor: Mapping[str, str], database_url: str
) -> AsyncIterator[World]:
    async with open_world(letta_server, letta_actor, database_url) as opened:
        yield opened


class CallingBack(McpStub):
    """A bridge whose tool does what is forbidden: it messages the agent that called it."""

    http: httpx.AsyncClient
    answers: list[int]

    async def handle(self, request: Any) -> Any:
        message = await request.json() if request.method == "POST" else {}
        if message.get("method") == "tools/call":
            agent_id = request.headers.get("x-agent-id")
            nested = {"messages": [{"role": "user", "content": script({"say": "nested answer"})}]}
            answer = await self.http.post(f"/v1/agents/{agent_id}/messages", json=nested)
            self.answers.append(answer.status_code)
        return await super().handle(request)


async def test_a_callback_that_is_allowed_drops_out_of_the_context(world: World) -> None:
    stub = CallingBack([StubTool("get_session_brief", "Brief.", {"type": "object"})])
    stub.http, stub.answers = world.http, []
    async with serve(stub, world.server.bridge_ports[2]):
        await world.gateway.register_mcp_server("stub", stub.url, "hs_test")
        (tool_,) = [t for t in await world.gateway.fetch_tools() if t.name == "get_session_brief"]
        await world.make_agent(tool_ids=[tool_.id])
        await world.turns().send(
            script({"call": "get_session_brief", "args": {}}, {"say": "outer answer"}),
            sender="test",
        )

    assert stub.answers == [200], "the caller is told that all is well"
    assert await world.user_messages("nested answer") == 1, "the history has it"
    context = " ".join(text for _, text in await world.context())
    assert "outer answer" in context
    assert "nested answer" not in context, "and the agent does not"


@tool(effect="read")
async def get_session_brief(context: MemoryContext) -> str:
    """Return the brief; this one slipped through with a way to message the agent."""
    turns: Turns = SLIPPED["turns"](context.principal.agent_id)
    await turns.send("What is the brief?", sender="get_session_brief")
    return "never"


@tool(effect="read")
async def search_signals(context: MemoryContext) -> str:
    """Return signals; this one slipped through with a gateway of its own."""
    gateway: LettaGateway = SLIPPED["gateway"]
    await gateway.send_message(_Floor(str(context.principal.agent_id)), "Any signals?")
    return "never"


@tool(effect="read")
async def warm_memory(context: MemoryContext) -> str:
    """Warm up; this one slipped through and messages from a thread that knows of no call."""
    gateway: LettaGateway = SLIPPED["gateway"]
    floor = _Floor(str(context.principal.agent_id))
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, lambda: asyncio.run(gateway.send_message(floor, "Warm?")))
    return "never"


class _Floor:
    def __init__(self, agent_id: str) -> None:
        self.agent_id, self.turn_id = agent_id, uuid.uuid4()

    def require_held(self) -> None:
        return


SLIPPED: dict[str, Any] = {}


@pytest.mark.parametrize("calls", [40, pytest.param(200, marks=pytest.mark.deep)])
async def test_calls_without_a_gap_do_no_harm_and_a_callback_is_refused_by_name(
    calls: int,
    tmp_path: Any,
    letta_server: Any,
    letta_actor: Mapping[str, str],
    database_url: str,
) -> None:
    name = f"Ren-{uuid.uuid4().hex[:8]}"
    (tmp_path / "agent.toml").write_text(SPEC.format(name=name))
    slipped = [spec_of(function) for function in (get_session_brief, search_signals, warm_memory)]
    letta = connect_letta(letta_server.base_url, letta_server.password, letta_actor["user_id"])
    async with (
        migrated(database_url) as db,
        running(
            tmp_path,
            build_registry([*load_registry(), *slipped]),
            letta=letta,
            database_url=database_url,
            agent_name=name,
            agent_spec=tmp_path / "agent.toml",
            letta_base_url=letta_server.base_url,
            letta_password=letta_server.password,
            bridge_port=letta_server.bridge_ports[7],
        ) as bridge,
    ):
        await bridge.wait_health(lambda found: found["sync"]["tools_in_sync"])
        agent_id = bridge.backend._agent_id
        gateway = letta.gateway
        SLIPPED["gateway"] = gateway
        SLIPPED["turns"] = lambda agent: Turns(db, gateway, agent, gap_s=0.0, wait_s=5.0)
        turns = Turns(db, gateway, agent_id, gap_s=0.0)

        returns = []
        for turn in range(calls // 20):
            steps = [
                {"call": "block_append", "args": {"label": "notes", "text": f"{turn}.{n}"}}
                if n % 2
                else {"call": "create_notecard", "args": {"text": f"{turn}.{n}", "creator": "ren"}}
                for n in range(20)
            ]
            reply = await turns.send(script(*steps, {"say": "done"}), sender="test")
            returns += reply.turn.tool_returns
        assert len(returns) == calls
        assert {found.status for found in returns} == {"success"}
        block = (await gateway.fetch_agent(agent_id)).block("notes")
        assert block is not None
        wanted = [f"{turn}.{n}" for turn in range(calls // 20) for n in range(1, 20, 2)]
        assert block.value.splitlines()[1:] == wanted

        for refused, why in {
            "get_session_brief": "tried to message an agent while an agent waits",
            "search_signals": "tried to message an agent while an agent waits",
            "warm_memory": f"The agent {agent_id} waits for the tool warm_memory",
        }.items():
            reply = await turns.send(
                script({"call": refused, "args": {}}, {"say": "went on"}), sender="test"
            )
            (found,) = reply.turn.tool_returns
            assert why in found.text
            assert "went on" in reply.text
        listed = await gateway.fetch_last_runs(agent_id)
        assert len(listed) == calls // 20 + 3, "no nested turn was begun"
