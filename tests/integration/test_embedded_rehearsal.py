"""The rehearsal model under the real Letta server: turns of an agent that calls a tool over MCP."""

from __future__ import annotations

import json
import uuid

import httpx
import pytest

from tests.contract.mcp_stub import McpStub, StubTool, serve

ECHO = StubTool(
    "echo_back",
    "Return what it is given.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


@pytest.fixture
async def client(letta_server, letta_actor):
    async with httpx.AsyncClient(
        base_url=letta_server.base_url, headers=letta_actor, timeout=120
    ) as client:
        yield client


async def make_agent(client, **fields):
    body = {
        "name": f"agent-{uuid.uuid4().hex}",
        "model": "openai-proxy/rehearsal",
        "embedding": "openai/text-embedding-3-small",
        "include_base_tools": False,
        "memory_blocks": [{"label": "notes", "value": "none"}],
        **fields,
    }
    made = await client.post("/v1/agents/", json=body)
    assert made.status_code == 200, made.text
    return made.json()


@pytest.fixture
async def bridge(letta_server, client):
    """Serve one tool and attach it to a fresh agent; gives the stub and the agent's id."""
    async with serve(McpStub([ECHO]), letta_server.bridge_ports[-1]) as stub:
        config = {"mcp_server_type": "streamable_http", "server_url": stub.url}
        made = await client.post("/v1/mcp-servers/", json={"server_name": "stub", "config": config})
        assert made.status_code == 200, made.text
        tools = (await client.get("/v1/tools/?limit=1000")).json()
        tool = next(tool for tool in tools if tool["name"] == ECHO.name)
        agent = await make_agent(client, tool_ids=[tool["id"]])
        yield stub, agent["id"]


def said(messages):
    return [m["content"] for m in messages if m["message_type"] == "assistant_message"]


async def send(client, agent_id, text):
    turn = await client.post(
        f"/v1/agents/{agent_id}/messages", json={"messages": [{"role": "user", "content": text}]}
    )
    assert turn.status_code == 200, turn.text
    return turn.json()


async def test_a_turn_calls_the_tool_and_says_what_it_returned(bridge, client):
    stub, agent_id = bridge
    turn = await send(client, agent_id, 'Call the tool echo_back with {"text": "hello"}')
    assert stub.calls == [("echo_back", {"text": "hello"}, agent_id)]
    assert said(turn["messages"]) == ["[rehearsal model] echo_back returned: echo_back was called"]
    assert turn["stop_reason"]["stop_reason"] == "end_turn"


@pytest.mark.parametrize("tokens", [True, False])
async def test_a_streamed_turn_calls_the_tool_too(bridge, client, tokens):
    stub, agent_id = bridge
    text = 'Call the tool echo_back with {"text": "hello"}'
    body = {"messages": [{"role": "user", "content": text}], "stream_tokens": tokens}
    path = f"/v1/agents/{agent_id}/messages/stream"
    async with client.stream("POST", path, json=body) as answer:
        lines = [line async for line in answer.aiter_lines() if line.startswith("data: {")]
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert stub.calls == [("echo_back", {"text": "hello"}, agent_id)]
    spoken = "".join(said([event for event in events if "message_type" in event]))
    assert spoken == "[rehearsal model] echo_back returned: echo_back was called"


async def test_a_script_takes_its_steps_one_a_call(bridge, client):
    stub, agent_id = bridge
    steps = [
        {"call": "echo_back", "args": {"text": "one"}},
        {"call": "echo_back", "args": {"text": "two"}},
        {"say": "both done"},
    ]
    turn = await send(client, agent_id, f"```rehearsal\n{json.dumps(steps)}\n```")
    assert [arguments for _, arguments, _ in stub.calls] == [{"text": "one"}, {"text": "two"}]
    assert said(turn["messages"]) == ["[rehearsal model] both done"]


@pytest.mark.parametrize("step", [{"empty": True}, {"thinking": "hm"}])
async def test_a_silent_step_ends_the_turn_without_a_message(client, step):
    agent = await make_agent(client)
    turn = await send(client, agent["id"], f"```rehearsal\n{json.dumps([step])}\n```")
    assert said(turn["messages"]) == []
    assert turn["stop_reason"]["stop_reason"] == "end_turn"


@pytest.mark.parametrize("step", [{"null": True}, {"error": 500}])
async def test_a_failing_step_fails_the_turn(client, step):
    agent = await make_agent(client)
    text = f"```rehearsal\n{json.dumps([step])}\n```"
    turn = await client.post(
        f"/v1/agents/{agent['id']}/messages",
        json={"messages": [{"role": "user", "content": text}]},
    )
    assert turn.status_code >= 500


async def test_an_agent_of_the_older_type_speaks_through_its_tool(client):
    agent = await make_agent(client, agent_type="memgpt_v2_agent", include_base_tools=True)
    turn = await send(client, agent["id"], "Good morning")
    assert said(turn["messages"]) == [
        "[rehearsal model] I am a stand-in and understand nothing. You wrote: Good morning"
    ]


async def test_passages_that_share_words_are_found_first(client):
    agent = await make_agent(client)
    for text in ("the heron waits at the river", "the ledger is balanced"):
        made = await client.post(f"/v1/agents/{agent['id']}/archival-memory", json={"text": text})
        assert made.status_code == 200, made.text
    found = await client.get(
        f"/v1/agents/{agent['id']}/archival-memory/search", params={"query": "heron at the river"}
    )
    assert found.json()["results"][0]["content"] == "the heron waits at the river"


async def test_its_context_window_is_not_lettas_default(client):
    models = (await client.get("/v1/models/")).json()
    [model] = [model for model in models if model["handle"] == "openai-proxy/rehearsal"]
    assert model["context_window"] == 128_000
