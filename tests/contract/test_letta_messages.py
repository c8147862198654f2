"""Messages on the real Letta: sent once whatever happens, and silence kept with its cause."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from han_solo.errors import ApprovalPending, LettaUnavailable, ModelFailed
from han_solo.letta.gateway import LettaGateway
from han_solo.letta.views import AgentView
from tests.contract.actor import open_gateway
from tests.contract.mcp_stub import McpStub, StubTool, serve
from tests.floors import OpenFloor

TOKEN = "hs_test_token"


def _script(*steps: Mapping[str, Any]) -> str:
    return f"```rehearsal\n{json.dumps(list(steps))}\n```"


async def _user_messages(http: httpx.AsyncClient, agent_id: str) -> list[str]:
    answer = await http.get(f"/v1/agents/{agent_id}/messages", params={"limit": 100})
    answer.raise_for_status()
    found = [m for m in answer.json() if m["message_type"] == "user_message"]
    return [str(message["content"]) for message in found]


async def test_a_turn_says_what_the_agent_said(gateway: LettaGateway, agent: AgentView) -> None:
    turn = await gateway.send_message(
        OpenFloor(agent.id), _script({"say": "I am the rehearsal model: hi."})
    )
    assert turn.assistant_text is not None
    assert "hi" in turn.assistant_text
    assert (turn.stop_reason, turn.steps) == ("end_turn", 1)
    assert turn.usage["total_tokens"] > 0


async def test_a_turn_shows_the_calls_and_what_came_back(
    letta_server: Any, gateway: LettaGateway, agent: AgentView
) -> None:
    stub = McpStub([StubTool("note", "Note.", {"type": "object", "properties": {}})])
    async with serve(stub, letta_server.bridge_ports[0]):
        await gateway.register_mcp_server("han-solo", stub.url, TOKEN)
        (tool,) = [tool for tool in await gateway.fetch_tools() if tool.name == "note"]
        await gateway.attach_tool(agent.id, tool.id)
        script = _script({"call": "note", "args": {"a": "x"}}, {"say": "Done."})
        turn = await gateway.send_message(OpenFloor(agent.id), script)
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [("note", {"a": "x"})]
    assert [(found.name, found.status) for found in turn.tool_returns] == [("note", "success")]
    assert "note was called" in turn.tool_returns[0].text
    assert [(name, agent_id) for name, _, agent_id in stub.calls] == [("note", agent.id)]
    assert not turn.is_silent


async def test_empty_output_is_a_silent_turn(gateway: LettaGateway, agent: AgentView) -> None:
    turn = await gateway.send_message(OpenFloor(agent.id), _script({"empty": True}))
    assert turn.is_silent
    assert turn.stop_reason == "end_turn"


async def test_running_out_of_steps_is_a_silent_turn_with_its_reason(
    letta_server: Any, gateway: LettaGateway, agent: AgentView
) -> None:
    stub = McpStub([StubTool("note", "Note.", {"type": "object", "properties": {}})])
    async with serve(stub, letta_server.bridge_ports[0]):
        await gateway.register_mcp_server("han-solo", stub.url, TOKEN)
        (tool,) = [tool for tool in await gateway.fetch_tools() if tool.name == "note"]
        await gateway.attach_tool(agent.id, tool.id)
        script = _script(*[{"call": "note", "args": {}}] * 5)
        turn = await gateway.send_message(OpenFloor(agent.id), script, max_steps=2)
    assert turn.is_silent
    assert (turn.stop_reason, turn.steps) == ("max_steps", 2)
    assert len(turn.tool_calls) == len(turn.tool_returns) == 2


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_a_model_that_fails_is_told_from_a_letta_that_fails(
    gateway: LettaGateway, agent: AgentView, status: int
) -> None:
    with pytest.raises(ModelFailed) as caught:
        await gateway.send_message(OpenFloor(agent.id), _script({"error": status}))
    assert not caught.value.retryable
    assert caught.value.status_code == status
    turn = await gateway.send_message(OpenFloor(agent.id), "Are you there?")
    assert not turn.is_silent


async def test_a_pending_approval_takes_no_message(
    letta_server: Any, gateway: LettaGateway
) -> None:
    stub = McpStub([StubTool("note", "Note.", {"type": "object", "properties": {}})])
    async with serve(stub, letta_server.bridge_ports[0]):
        await gateway.register_mcp_server("han-solo", stub.url, TOKEN)
    (tool,) = [tool for tool in await gateway.fetch_tools() if tool.name == "note"]
    agent = await gateway.create_agent(
        name="ren",
        model="openai-proxy/rehearsal",
        tool_ids=[tool.id],
        tool_rules=[{"type": "requires_approval", "tool_name": "note"}],
    )
    script = _script({"call": "note", "args": {}})
    turn = await gateway.send_message(OpenFloor(agent.id), script)
    assert (turn.stop_reason, turn.awaited_tools) == ("requires_approval", ("note",))
    assert turn.awaits_approval
    assert turn.tool_calls == ()
    with pytest.raises(ApprovalPending):
        await gateway.send_message(OpenFloor(agent.id), "hello?")


async def test_a_turn_is_found_again_by_its_id(gateway: LettaGateway, agent: AgentView) -> None:
    floor, other = OpenFloor(agent.id), OpenFloor(agent.id)
    turn = await gateway.send_message(floor, _script({"say": "First."}))
    await gateway.send_message(other, _script({"empty": True}))
    absent = uuid.uuid4()
    runs = await gateway.find_runs(agent.id, [floor.turn_id, other.turn_id, absent])
    assert set(runs) == {floor.turn_id, other.turn_id}
    first = runs[floor.turn_id]
    assert (first.id, first.status, first.stop_reason) == (turn.run_id, "completed", "end_turn")
    assert first.is_over
    kept = await gateway.fetch_kept(first)
    assert kept.has_message
    assert (kept.turn.assistant_text, kept.turn.steps) == (turn.assistant_text, 1)
    silent = await gateway.fetch_kept(runs[other.turn_id])
    assert silent.has_message
    assert silent.turn.is_silent
    assert await gateway.fetch_active_runs(agent.id) == ()


async def test_a_message_of_a_model_that_failed_at_once_is_not_kept(
    gateway: LettaGateway, agent: AgentView, http: httpx.AsyncClient
) -> None:
    floor = OpenFloor(agent.id)
    with pytest.raises(ModelFailed):
        await gateway.send_message(floor, _script({"error": 500}))
    run = (await gateway.find_runs(agent.id, [floor.turn_id]))[floor.turn_id]
    assert (run.status, run.stop_reason) == ("failed", None)
    assert run.error is not None
    assert "Error code: 500" in run.error
    assert not (await gateway.fetch_kept(run)).has_message
    assert await _user_messages(http, agent.id) == []


async def test_a_message_that_timed_out_was_sent_once(
    letta_server: Any,
    letta_actor: Mapping[str, str],
    agent: AgentView,
    http: httpx.AsyncClient,
) -> None:
    impatient, transport = open_gateway(letta_server.base_url, letta_actor, message_timeout_s=0.5)
    text = f"Only once. {_script({'sleep_s': 3}, {'say': 'Late.'})}"
    async with impatient:
        with pytest.raises(LettaUnavailable, match="no answer in time") as caught:
            await impatient.send_message(OpenFloor(agent.id), text)
    assert not caught.value.retryable
    assert transport.sent == [("POST", f"/v1/agents/{agent.id}/messages")]

    async def heard() -> list[str]:
        return [m for m in await _user_messages(http, agent.id) if "Only once." in m]

    async with asyncio.timeout(60):
        while not await heard():
            await asyncio.sleep(0.2)
    assert len(await heard()) == 1


async def test_while_a_turn_runs_its_run_is_active(
    letta_server: Any,
    letta_actor: Mapping[str, str],
    gateway: LettaGateway,
    agent: AgentView,
) -> None:
    impatient, _ = open_gateway(letta_server.base_url, letta_actor, message_timeout_s=0.5)
    floor = OpenFloor(agent.id)
    async with impatient:
        with pytest.raises(LettaUnavailable):
            await impatient.send_message(floor, _script({"sleep_s": 3}, {"say": "Late."}))
    (run,) = await gateway.fetch_active_runs(agent.id)
    assert (run.turn_id, run.is_over) == (floor.turn_id, False)
    assert not (await gateway.fetch_kept(run)).has_message
    assert await gateway.fetch_last_activity(run) == run.created_at
    async with asyncio.timeout(60):
        while await gateway.fetch_active_runs(agent.id):
            await asyncio.sleep(0.2)
    found = (await gateway.find_runs(agent.id, [floor.turn_id]))[floor.turn_id]
    kept = await gateway.fetch_kept(found)
    assert kept.has_message
    assert kept.turn.assistant_text is not None
    assert await gateway.fetch_last_activity(found) > found.created_at
