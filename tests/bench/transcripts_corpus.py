"""Made-up Claude Code sessions of any size: the mix of records and lengths that real ones have."""

from __future__ import annotations

import json
import random
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

WORDS = (
    "the parser reads a line and keeps its place so that nothing is lost when the file grows "
    "while tests run against Postgres a cache of sessions holds what was decided yesterday "
    "rename function module error timeout retry offset branch merge commit schema index query"
).split()
OUTPUT = "src/parser/lines.py:{0}:    return offset + len(line)  # keeps {1}\n"


def write_corpus(folder: Path, megabytes: int, *, files: int = 40, seed: int = 7) -> int:
    """Write sessions of so many megabytes in all; returns their bytes."""
    dice = random.Random(seed)
    each = megabytes * 1_000_000 // files
    total = 0
    for number in range(files):
        project = folder / f"-srv-project-{number % 8}"
        project.mkdir(parents=True, exist_ok=True)
        session = str(uuid.UUID(int=dice.getrandbits(128)))
        lines = list(_session(dice, session, f"/srv/project/{number % 8}", each))
        data = "".join(lines).encode()
        (project / f"{session}.jsonl").write_bytes(data)
        total += len(data)
    return total


def _session(dice, session, cwd, size):
    at = datetime(2026, 11, 1, 8, tzinfo=UTC) + timedelta(minutes=dice.randrange(20_000))
    parent = None
    written = 0
    while written < size:
        for record in _turn(dice):
            at += timedelta(seconds=dice.randrange(1, 20))
            own = str(uuid.UUID(int=dice.getrandbits(128)))
            line = json.dumps(
                {
                    "parentUuid": parent,
                    "isSidechain": False,
                    "userType": "external",
                    "cwd": cwd,
                    "sessionId": session,
                    "version": "2.1.0",
                    "gitBranch": "main",
                    **record,
                    "uuid": own,
                    "timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.000Z",
                },
                separators=(",", ":"),
            )
            parent = own
            written += len(line) + 1
            yield line + "\n"


def _turn(dice):
    yield {"type": "user", "message": {"role": "user", "content": _prose(dice, 40)}}
    for _ in range(dice.randrange(2, 6)):
        call = f"toolu_{dice.getrandbits(64):x}"
        yield _reply(dice, [{"type": "text", "text": _prose(dice, 60)}])
        given = {"file_path": "/srv/a.py", "old_string": _prose(dice, 40), "new_string": "x = 1\n"}
        yield _reply(dice, [{"type": "tool_use", "id": call, "name": "Edit", "input": given}])
        yield {
            "type": "progress",
            "data": {"type": "hook_progress", "hookEvent": "PostToolUse", "command": "check"},
            "toolUseID": call,
        }
        output = "".join(
            OUTPUT.format(dice.randrange(999), dice.choice(WORDS))
            for _ in range(dice.randrange(5, 90))
        )
        yield {
            "type": "user",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call, "content": output}],
            },
            "toolUseResult": {"stdout": output, "stderr": "", "interrupted": False},
        }


def _reply(dice, content):
    return {
        "type": "assistant",
        "requestId": f"req_{dice.getrandbits(64):x}",
        "message": {
            "id": f"msg_{dice.getrandbits(64):x}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-4",
            "content": content,
            "stop_reason": None,
            "usage": {
                "input_tokens": 4,
                "cache_creation_input_tokens": 1200,
                "cache_read_input_tokens": 40_000,
                "output_tokens": dice.randrange(1, 900),
            },
        },
    }


def _prose(dice, words):
    return " ".join(dice.choices(WORDS, k=dice.randrange(words // 4, words * 2)))
