"""The rehearsal model's HTTP: what an OpenAI client gets."""

from __future__ import annotations

import base64
import json
import math
import struct

import httpx
import pytest

from han_solo.embedded.rehearsal import build_app, embed


@pytest.fixture
async def client():
    transport = httpx.ASGITransport(build_app())
    async with httpx.AsyncClient(transport=transport, base_url="http://rehearsal") as client:
        yield client


def chat(text, **more):
    tool = {"type": "function", "function": {"name": "echo", "parameters": {}}}
    return {"messages": [{"role": "user", "content": text}], "tools": [tool], **more}


async def stream(client, body):
    answer = await client.post("/v1/chat/completions", json={**body, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in answer.text.splitlines() if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


async def test_one_model_is_listed(client):
    [model] = (await client.get("/v1/models")).json()["data"]
    assert (model["id"], model["context_length"]) == ("rehearsal", 128_000)


async def test_health_says_what_it_is(client):
    assert (await client.get("/health")).json()["model"] == "rehearsal"


async def test_a_call_is_given_as_openai_gives_it(client):
    body = chat('Call the tool echo with {"a": 1}')
    answer = (await client.post("/v1/chat/completions", json=body)).json()
    [choice] = answer["choices"]
    [call] = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert json.loads(call["function"]["arguments"]) == {"a": 1}
    assert answer["usage"]["total_tokens"] > 0


async def test_streamed_words_join_to_the_whole_text(client):
    body = chat("two  spaces\nand a line")
    whole = (await client.post("/v1/chat/completions", json=body)).json()
    chunks = await stream(client, body)
    text = "".join(
        choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]
    )
    assert text == whole["choices"][0]["message"]["content"]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


async def test_a_streamed_call_is_whole(client):
    chunks = await stream(client, chat('Call the tool echo with {"a": 1}'))
    [calls] = [
        choice["delta"]["tool_calls"]
        for chunk in chunks
        for choice in chunk["choices"]
        if "tool_calls" in choice["delta"]
    ]
    assert calls[0]["index"] == 0
    assert json.loads(calls[0]["function"]["arguments"]) == {"a": 1}


async def test_usage_is_streamed_when_asked_for(client):
    body = chat("hi", stream_options={"include_usage": True})
    assert (await stream(client, body))[-1]["usage"]["total_tokens"] > 0


async def test_a_scripted_error_is_that_status(client):
    body = chat('```rehearsal\n[{"error": 503}]\n```')
    assert (await client.post("/v1/chat/completions", json=body)).status_code == 503


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
async def test_a_body_that_is_not_json_is_refused(client, path):
    assert (await client.post(path, content=b"{")).status_code == 400


class TestEmbeddings:
    def test_they_have_unit_length(self):
        for text in ("", "one", "many more words than one"):
            assert math.isclose(math.hypot(*embed(text)), 1.0)

    def test_texts_that_share_words_are_nearer(self):
        def near(a, b):
            return sum(x * y for x, y in zip(embed(a), embed(b), strict=True))

        query = "heron at the river"
        assert near(query, "the heron by a river") > near(query, "the ledger is balanced")

    @pytest.mark.parametrize(
        ("more", "dimension"),
        [
            ({"model": "text-embedding-3-small"}, 1_536),
            ({"model": "text-embedding-3-large"}, 3_072),
            ({"model": "text-embedding-3-small", "dimensions": 256}, 256),
        ],
    )
    async def test_their_dimension_is_the_models(self, client, more, dimension):
        answer = await client.post("/v1/embeddings", json={"input": ["a", "b"], **more})
        assert [len(item["embedding"]) for item in answer.json()["data"]] == [dimension] * 2

    async def test_base64_holds_the_same_numbers(self, client):
        body = {"input": "a word", "encoding_format": "base64"}
        [item] = (await client.post("/v1/embeddings", json=body)).json()["data"]
        numbers = struct.unpack("<1536f", base64.b64decode(item["embedding"]))
        assert numbers == pytest.approx(embed("a word"))

    @pytest.mark.parametrize("given", ["text", ["text"], [1, 2], [[1, 2]]])
    async def test_every_form_of_input_is_taken(self, client, given):
        answer = await client.post("/v1/embeddings", json={"input": given})
        assert len(answer.json()["data"]) == 1
