"""The rehearsal model: an OpenAI-compatible stand-in on loopback, for when no model key is set.

It makes every part between the agent and its tools work for real without a model: it is told what
to call and calls it. What it answers is decided by ``rehearsal_script``; this is its HTTP. Vectors
are made by hashing words, so texts that share words are near, on every machine the same.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import math
import re
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ..connections import LOOPBACK
from .rehearsal_script import MODEL, Reply, count_tokens, reply

CONTEXT_WINDOW: Final = 128_000  # the most that Letta gives any model unasked

_DIMENSIONS: Final = {"text-embedding-3-large": 3_072}
_DEFAULT_DIMENSION: Final = 1_536  # of the other OpenAI embedding models, which Letta expects
_WORD: Final = re.compile(r"\w+")


def build_app() -> Starlette:
    """Build the ASGI app; it holds no state."""
    return Starlette(
        routes=[
            Route("/health", _health),
            Route("/v1/models", _models),
            Route("/v1/chat/completions", _chat, methods=["POST"]),
            Route("/v1/embeddings", _embeddings, methods=["POST"]),
        ]
    )


async def serve(port: int) -> None:
    """Serve on loopback until cancelled or signalled."""
    config = uvicorn.Config(
        build_app(),
        host=LOOPBACK,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=2,  # a scripted wait must not hold up the end
    )
    await uvicorn.Server(config).serve()


def embed(text: str, dimension: int = _DEFAULT_DIMENSION) -> list[float]:
    """Return a vector of unit length in which each word has its own place."""
    vector = [0.0] * dimension
    for word in _WORD.findall(text.lower()) or [""]:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        position, sign = divmod(int.from_bytes(digest, "big"), 2)
        vector[position % dimension] += 1.0 if sign else -1.0
    length = math.sqrt(sum(value * value for value in vector))
    if not length:  # two words took each other's place away
        vector[0] = length = 1.0
    return [value / length for value in vector]


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok", "model": MODEL})


async def _models(_request: Request) -> Response:
    model = {
        "id": MODEL,
        "object": "model",
        "created": 0,
        "owned_by": "han-solo",
        "context_length": CONTEXT_WINDOW,
    }
    return JSONResponse({"object": "list", "data": [model]})


async def _chat(request: Request) -> Response:
    body = await _read_body(request)
    if body is None:
        return _refuse(400, "The body is not a JSON object.")
    answer = reply(body)
    if answer.delay_s:
        await asyncio.sleep(answer.delay_s)
    if answer.error is not None:
        return _refuse(answer.error, "The rehearsal script asked for this error.")
    if body.get("stream"):
        with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return StreamingResponse(
            _stream(answer, with_usage=with_usage), media_type="text/event-stream"
        )
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.thinking is not None:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = _build_calls(answer)
    choice = {"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}
    return JSONResponse(
        {**_envelope("chat.completion"), "choices": [choice], "usage": _usage(answer)}
    )


async def _stream(answer: Reply, *, with_usage: bool) -> AsyncIterator[str]:
    """Yield the answer in the chunks that OpenAI would send; words one by one."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if answer.thinking is not None:
        deltas.append({"reasoning_content": answer.thinking})
    deltas += [{"content": part} for part in re.findall(r"\s*\S+|\s+$", answer.text or "")]
    for index, call in enumerate(_build_calls(answer)):
        deltas.append({"tool_calls": [{"index": index, **call}]})
    envelope = _envelope("chat.completion.chunk")
    for delta in deltas:
        yield _event({**envelope, "choices": [_chunk(delta)]})
    yield _event({**envelope, "choices": [_chunk({}, finish=answer.finish)]})
    if with_usage:
        yield _event({**envelope, "choices": [], "usage": _usage(answer)})
    yield "data: [DONE]\n\n"


async def _embeddings(request: Request) -> Response:
    body = await _read_body(request)
    if body is None or "input" not in body:
        return _refuse(400, "The body has no input.")
    texts = _read_inputs(body["input"])
    model = str(body.get("model", ""))
    dimension = int(body.get("dimensions") or _DIMENSIONS.get(model, _DEFAULT_DIMENSION))
    data = []
    for index, text in enumerate(texts):
        vector: list[float] | str = embed(text, dimension)
        if body.get("encoding_format") == "base64":
            vector = base64.b64encode(struct.pack(f"<{dimension}f", *vector)).decode()
        data.append({"object": "embedding", "index": index, "embedding": vector})
    tokens = sum(count_tokens(text) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JSONResponse({"object": "list", "data": data, "model": model, "usage": usage})


def _read_inputs(given: object) -> Sequence[str]:
    """Return the texts: OpenAI takes one, several, or either as lists of token numbers."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, list) and given and isinstance(given[0], int):
        return [" ".join(map(str, given))]
    if isinstance(given, list):
        return [item if isinstance(item, str) else " ".join(map(str, item)) for item in given]
    return [str(given)]


async def _read_body(request: Request) -> dict[str, Any] | None:
    try:
        body = await request.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _build_calls(answer: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in answer.calls
    ]


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}


def _envelope(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-rehearsal", "object": kind, "created": 0, "model": MODEL}


def _usage(answer: Reply) -> dict[str, int]:
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _refuse(status: int, message: str) -> Response:
    error = {"message": message, "type": "rehearsal_error", "code": status}
    return JSONResponse({"error": error}, status_code=status)


def main() -> None:
    """Serve as a process of its own: ``python -m han_solo.embedded.rehearsal --port N``."""
    parser = argparse.ArgumentParser(description="The rehearsal model.")
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
