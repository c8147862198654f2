"""Messages on the real Letta: sent once whatever happens, and silence kept with its cause."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from han_solo.errors import LettaUnavailable
from han_solo.letta.gateway import LettaGateway
from han_solo.letta.views import AgentView
from tests.contract.actor import open_gateway
from tests.contract.mcp_stub import McpStub, StubTool, serve

TOKEN = "hs_test_token"


def _script(*steps: Mapping[str, Any]) -> str:
    return f"```rehearsal\n{json.dumps(list(steps))}\n```"


async def _user_messages(http: httpx.AsyncClient, agent_id: str) -> list[str]:
    answer = await http.get(f"/v1/agents/{agent_id}/messages", params={"limit": 100})
    answer.raise_for_status()
    found = [m for m in answer.json() if m["message_type"] == "user_message"]
    return [str(message["content"]) for message in found]


async def test_a_turn_says_what_the_agent_said(gateway: LettaGateway, agent: AgentView) -> None:
    turn = await gateway.send_message(agent.id, _script({"say": "I am the rehearsal model: hi."}))
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
        turn = await gateway.send_message(agent.id, script)
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [("note", {"a": "x"})]
    assert [(found.name, found.status) for found in turn.tool_returns] == [("note", "success")]
    assert "note was called" in turn.tool_returns[0].text
    assert [(name, agent_id) for name, _, agent_id in stub.calls] == [("note", agent.id)]
    assert not turn.is_silent


async def test_empty_output_is_a_silent_turn(gateway: LettaGateway, agent: AgentView) -> None:
    turn = await gateway.send_message(agent.id, _script({"empty": True}))
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
        turn = await gateway.send_message(agent.id, script, max_steps=2)
    assert turn.is_silent
    assert (turn.stop_reason, turn.steps) == ("max_steps", 2)
    assert len(turn.tool_calls) == len(turn.tool_returns) == 2


async def test_a_model_that_fails_is_an_error_that_is_not_retryable(
    gateway: LettaGateway, agent: AgentView, http: httpx.AsyncClient
) -> None:
    with pytest.raises(LettaUnavailable) as caught:
        await gateway.send_message(agent.id, _script({"error": 500}))
    assert not caught.value.retryable
    assert caught.value.status_code == 500
    turn = await gateway.send_message(agent.id, "Are you there?")
    assert not turn.is_silent


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
            await impatient.send_message(agent.id, text)
    assert not caught.value.retryable
    assert transport.sent == [("POST", f"/v1/agents/{agent.id}/messages")]

    async def heard() -> list[str]:
        return [m for m in await _user_messages(http, agent.id) if "Only once." in m]

    async with asyncio.timeout(60):
        while not await heard():
            await asyncio.sleep(0.2)
    assert len(await heard()) == 1
