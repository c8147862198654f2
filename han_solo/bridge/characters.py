"""Refuse JSON with half of a character in it by name, before a parser calls it a syntax error.

JSON may spell a lone surrogate, as hex digits, which is no character and can not be stored. The
parsers below say "unexpected end of hex escape" to that, from which a caller learns nothing; to a
tool's caller it is said as the tool's own error.
"""

from __future__ import annotations

import json
import re
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .faults import build_error

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""How any surrogate is spelled; whole pairs are common, so this only says where to look."""


class WholeCharacters:
    """Answer bodies with a lone surrogate here; they come whole, from ``BodyLimit``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        message = await receive()
        refusal = _refuse(message.get("body", b""))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        given = False

        async def replayed() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return message

        await self._app(scope, replayed, send)


def _refuse(body: bytes) -> JSONResponse | None:
    """Return the answer to a body with a lone surrogate in it, or None."""
    if not _SURROGATE.search(body):
        return None
    try:
        parsed = json.loads(body)
        json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):04X}"
    except ValueError:  # no JSON: whoever reads it says so
        return None
    else:
        return None
    said = f"The text has a lone surrogate ({half}), which is half of a character."
    hint = "Send the whole character, or leave it out; nothing was done."
    if not (isinstance(parsed, dict) and "jsonrpc" in parsed):
        return build_error(400, said, hint)
    answer: dict[str, object] = {"jsonrpc": "2.0", "id": parsed.get("id")}
    if parsed.get("method") == "tools/call":
        content = [{"type": "text", "text": f"{said} {hint}"}]
        answer["result"] = {"content": content, "isError": True}
    else:
        answer["error"] = {"code": -32602, "message": f"{said} {hint}"}
    return JSONResponse(answer)
