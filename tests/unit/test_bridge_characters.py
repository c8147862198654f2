"""Half a character is refused by name, and everything else passes untouched."""

from __future__ import annotations

import json

import pytest

from tests.unit.bridge_fakes import backend, bearer, call, serving

LONE = '{"jsonrpc": "2.0", "id": 7, "method": "%s", "params": {"x": "a\\ud800"}}'
HEADERS = {
    **bearer("good-agent"),
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}


async def test_a_tool_call_with_half_a_character_is_the_tools_error():
    async with serving(backend()) as client:
        answer = await client.post("/mcp", content=LONE % "tools/call", headers=HEADERS)
        assert answer.json() == {
            "jsonrpc": "2.0",
            "id": 7,
            "result": {
                "isError": True,
                "content": [
                    {
                        "type": "text",
                        "text": "The text has a lone surrogate (U+D800), which is half of a "
                        "character. Send the whole character, or leave it out; nothing was done.",
                    }
                ],
            },
        }


@pytest.mark.parametrize("method", ["tools/list", "resources/read"])
async def test_any_other_request_with_one_is_an_error_with_the_same_words(method):
    async with serving(backend()) as client:
        answer = (await client.post("/mcp", content=LONE % method, headers=HEADERS)).json()
        assert answer["id"] == 7
        assert "lone surrogate (U+D800)" in answer["error"]["message"]


async def test_a_body_that_is_no_message_is_a_400():
    async with serving(backend()) as client:
        body = '["\\udfff"]'
        answer = await client.post("/api/admin/agent-info", content=body, headers=HEADERS)
        assert answer.status_code == 400
        assert "U+DFFF" in answer.json()["error"]


async def test_whole_pairs_and_broken_json_are_left_to_those_who_read_them():
    async with serving(backend()) as client:
        worked, said = await call(client, "good-agent", "echo", text="\U0001f600 \\ud800")
        assert worked
        assert "\U0001f600 \\ud800" in said
        spelled = json.dumps({"a": "\U0001f600"})
        assert "\\ud83d" in spelled
        answer = await client.post("/mcp", content=spelled[:-1], headers=HEADERS)
        assert "lone" not in answer.text
