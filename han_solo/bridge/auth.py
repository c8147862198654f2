"""Who is calling: one check of the bearer token in front of every route, MCP's among them.

It stands before the router, so a route that is added later is closed until it is listed in
``OPEN_PATHS``. What it finds lies on the request, for the routes and for the tools alike. FastMCP's
own token verification is not used: it answers a database that is away like a wrong token, and a
caller told that throws a good token away.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, Protocol

from fastmcp.server.dependencies import get_http_request
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import Unauthenticated, UsageError
from ..principals import Principal

OPEN_PATHS: Final = frozenset({"/health", "/ready"})
"""What answers without a token: probes have none, and both say only whether the bridge works."""

AGENT_HEADER: Final = "x-agent-id"
"""Letta sends it with each call an agent makes, and with nothing else."""

_AGENT_ID = re.compile(r"agent-[0-9a-f-]{1,60}")

Endpoint = Callable[[Request], Awaitable[Response]]


class Verifier(Protocol):
    """Knows the tokens; ``han_solo.tokens.service.Tokens`` in life."""

    async def verify(self, token: str) -> Principal:
        """Return whose token it is; raise ``Unauthenticated`` or ``DatabaseUnavailable``."""
        ...


class Authentication:
    """ASGI middleware: no request passes without a token of ours but those to ``OPEN_PATHS``."""

    def __init__(self, app: ASGIApp, verifier: Verifier) -> None:
        self._app = app
        self._verifier = verifier

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            principal = await authenticate(Headers(scope=scope), self._verifier)
            scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)


async def authenticate(headers: Headers, verifier: Verifier) -> Principal:
    """Return the principal that the headers prove.

    ``x-agent-id`` is believed only with a token of kind agent: any other caller could write it.

    Raises:
        Unauthenticated: no token, or not one of ours.
        DatabaseUnavailable: the tokens can not be read; says nothing of this one.
    """
    sent = headers.getlist("authorization")
    scheme, _, token = (sent[0] if len(sent) == 1 else "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated(
            "This needs a token.",
            hint="Send `Authorization: Bearer hs_...`; make one with `han-solo tokens create`.",
        )
    principal = await verifier.verify(token.strip())
    agent_id = headers.get(AGENT_HEADER)
    if principal.kind != "agent" or not agent_id:
        return principal
    if not _AGENT_ID.fullmatch(agent_id):
        raise UsageError(
            f"The header {AGENT_HEADER} does not hold the id of an agent.",
            hint="Letta writes it as agent-<uuid>.",
        )
    return replace(principal, agent_id=agent_id)


def principal_of(request: Request) -> Principal:
    """Return whom ``Authentication`` found.

    Raises:
        Unauthenticated: the route is open, so nobody was asked.
    """
    found = getattr(request.state, "principal", None)
    if not isinstance(found, Principal):
        raise Unauthenticated("This needs a token.")
    return found


def current_principal() -> Principal:
    """Return who makes the MCP call that is being served."""
    return principal_of(get_http_request())


def require_scope(scope: str, endpoint: Endpoint) -> Endpoint:
    """Wrap a route's endpoint: it is reached only with that scope, else ``Forbidden``."""

    async def guarded(request: Request) -> Response:
        principal_of(request).require(scope)
        return await endpoint(request)

    return guarded
