"""Lines of transcripts, made for the tests: one of each shape, and one of each damage."""

from __future__ import annotations

import base64
import json
from typing import Any

PICTURE = base64.b64encode(b"\x89PNG not really").decode()
COMMON = {"sessionId": "s-1", "cwd": "/srv/demo", "version": "2.1.0", "isSidechain": False}


def line(kind: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    """Return a record of a type, with what nearly all of them have."""
    return {
        "type": kind,
        "uuid": f"u-{number}",
        "parentUuid": f"u-{number - 1}",
        "timestamp": f"2026-11-30T10:00:{number % 60:02}.000Z",
        **COMMON,
        **fields,
    }


def said(role: str, content: Any, number: int = 1, **fields: Any) -> dict[str, Any]:
    """Return a message of the user or the assistant."""
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        usage = {"input_tokens": 10, "output_tokens": 5}
        message |= {"id": f"m-{number}", "model": "model-1", "usage": usage}
    return line(role, number, message=message, **fields)


SHAPES: dict[str, list[dict[str, Any]]] = {
    "prompt": [
        said("user", "Hello"),
        said("user", [{"type": "text", "text": "Hello"}, "and a bare string"]),
        said("user", [{"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                                    "data": PICTURE}}]),
        {"message": {"role": "user", "content": "very old, without a type"}, "costUSD": 0.1},
    ],
    "answer": [
        said("assistant", [{"type": "thinking", "thinking": "Hm."},
                           {"type": "text", "text": "Hi"}]),
        said("assistant", "Hi"),
    ],
    "thinking": [said("assistant", [{"type": "thinking", "thinking": "Hm."}])],
    "tool_call": [
        said("assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"a": 1}}])
    ],
    "tool_result": [
        said("user", [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]),
        said("user", [{"type": "tool_result", "tool_use_id": "t", "is_error": True,
                       "content": [{"type": "text", "text": "no"}]}], toolUseResult="no"),
        said("user", [{"type": "tool_result", "tool_use_id": "t"}], toolUseResult={"stdout": "x"}),
    ],
    "queued_prompt": [
        line("attachment", attachment={"type": "queued_command", "prompt": "and then?"}),
        line("attachment", attachment={"type": "queued_command",
                                       "prompt": [{"type": "text", "text": "and then?"}]}),
        {"type": "queue-operation", "operation": "enqueue", "content": "and then?",
         "sessionId": "s-1", "timestamp": "2026-11-30T10:00:00Z"},
    ],
    "compact_summary": [said("user", "The talk so far ...", isCompactSummary=True)],
    "summary": [{"type": "summary", "summary": "What it was about", "leafUuid": "u-9"}],
    "title": [
        {"type": "custom-title", "customTitle": "The parser", "sessionId": "s-1"},
        {"type": "ai-title", "aiTitle": "A parser", "sessionId": "s-1"},
    ],
    "meta": [said("user", "Caveat: ...", isMeta=True)],
    "system": [
        line("system", subtype="away_summary", content="While you were away ..."),
        line("system", subtype="compact_boundary", parentUuid=None, compactMetadata={"x": 1}),
    ],
    "attachment": [line("attachment", attachment={"type": "hook_success", "stdout": "ok"})],
    "event": [
        line("progress", data={"type": "hook"}),
        {"type": "file-history-snapshot", "snapshot": {}},
        {"type": "queue-operation", "operation": "dequeue", "sessionId": "s-1"},
    ],
    "unknown": [line("what-comes-next", news=[1, 2]), {"silly": "this"}],
}  # fmt: skip
"""Each kind, and the shapes in which it comes."""

GOOD = [json.dumps(record).encode() for records in SHAPES.values() for record in records]

DAMAGED: dict[str, bytes] = {
    "broken": b'{"type":"user","message":{"role":"user","content":"cut of',
    "not_an_object": b"42",
    "bad_shape": b'{"type":"user","uuid":7,"message":{"role":"user","content":"x"}}',
    "bad_message": b'{"type":"user","uuid":"b","message":{"0":"h","1":"i"}}',
    "bad_utf8": b'{"type":"user","uuid":"c","message":{"role":"user","content":"\xff\xfe"}}',
    "nul_bytes": b'\x00\x00{"type":"user","uuid":"d","message":{"role":"user","content":"x"}}\x00',
    "nul_in_text": b'{"type":"user","uuid":"e","message":{"role":"user","content":"a\\u0000b"}}',
    "several_on_a_line": GOOD[0] + GOOD[4],
}
"""A line of each kind of damage."""


def join(*lines: bytes) -> bytes:
    """Return the bytes of a file."""
    return b"".join(each + b"\n" for each in lines)
