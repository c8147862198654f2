"""The outermost layers of the bridge: one log line a request, errors as JSON, a bound on bodies."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import logs
from ..principals import Principal
from .auth import OPEN_PATHS
from .faults import build_error, to_response

_log = logs.get("bridge")

MAX_BODY_BYTES: Final = 8 * 1024 * 1024
"""A block of a million characters, each escaped in JSON as six bytes, fits; no tool takes more."""

BODY_TIMEOUT_S: Final = 30.0
"""Seconds for a body to come in: long for a slow line, short against one that never ends."""

_MAX_PATH_CHARS: Final = 200


class AccessLog:
    """Log method, path, status, duration and principal; never a query, a header or a body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            principal = scope.get("state", {}).get("principal")
            quiet = scope["path"] in OPEN_PATHS and status < 400  # noqa: PLR2004 - probes that pass
            write = _log.debug if quiet else _log.info
            write(
                "bridge.request_served",
                method=scope["method"],
                path=scope["path"][:_MAX_PATH_CHARS],
                status=status,
                duration_ms=round((time.perf_counter() - started) * 1000, 1),
                principal=principal.name if isinstance(principal, Principal) else None,
            )


class ErrorEdge:
    """Answer what was raised below as JSON; the last place where an error can be answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception as error:
            if scope["type"] != "http" or started:
                raise
            response = to_response(error, where=scope["path"][:_MAX_PATH_CHARS])
            await response(scope, receive, send)


class BodyLimit:
    """Read the body whole, bounded in size and time, before anything works on it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        refusal = None
        body: bytes | None = b""
        if declared.isdecimal() and int(declared) > MAX_BODY_BYTES:
            body = None
        else:
            try:
                async with asyncio.timeout(BODY_TIMEOUT_S):
                    body = await _read_body(receive)
            except TimeoutError:
                refusal = build_error(
                    408, f"The request's body did not come within {BODY_TIMEOUT_S:.0f} s.", None
                )
        if body is None:
            refusal = build_error(
                413,
                f"The request's body is larger than {MAX_BODY_BYTES:,} bytes.",
                "Send it in parts.",
            )
        if refusal:
            refusal.headers["Connection"] = "close"  # the rest of the body is still on the line
            await refusal(scope, receive, send)
            return
        await self._app(scope, _replay(body or b"", receive), send)


async def _read_body(receive: Receive) -> bytes | None:
    """Return the body, or None when it is too large."""
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""  # the caller is gone; nobody reads an answer
        piece = message.get("body", b"")
        size += len(piece)
        if size > MAX_BODY_BYTES:
            return None
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives the body once and then waits for the caller to leave."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
