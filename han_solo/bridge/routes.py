"""The bridge's routes beside ``/mcp``, as a table: path, method, scope, and what it does.

The table is what the app is built from and what the tests walk, so that no route can be added
without saying whom it is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..principals import ADMIN, OPERATOR_READ
from .auth import Endpoint, Verifier, require_scope
from .faults import RETRY_AFTER_S
from .health import Health, installed_version


class Operations(Verifier, Protocol):
    """What the routes need of the running bridge."""

    async def fetch_health(self) -> Health:
        """Look at the parts; answers within a few seconds and never raises."""
        ...

    async def sync_tools(self) -> Mapping[str, object]:
        """Run ``ensure_ren_tools`` and return its outcome."""
        ...

    async def fetch_jobs_status(self) -> Mapping[str, object]:
        """Return whether jobs are paused, and what came of each job's last run."""
        ...

    async def fetch_agent_info(self) -> Mapping[str, object]:
        """Return the agent's name, model, tools and drift."""
        ...


@dataclass(frozen=True, slots=True)
class BridgeRoute:
    """One route; ``scope`` is what a token needs, None where none is asked for."""

    path: str
    method: str
    scope: str | None
    endpoint: Endpoint

    def build(self) -> Route:
        endpoint = require_scope(self.scope, self.endpoint) if self.scope else self.endpoint
        return Route(self.path, endpoint, methods=[self.method])


def build_routes(operations: Operations, *, tool_count: int) -> tuple[BridgeRoute, ...]:
    """Build the table."""

    async def health(_request: Request) -> Response:
        found = await operations.fetch_health()
        return JSONResponse(found.to_json(version=installed_version(), tool_count=tool_count))

    async def ready(_request: Request) -> Response:
        found = await operations.fetch_health()
        body = found.to_json(version=installed_version(), tool_count=tool_count)
        if found.ok:
            return JSONResponse(body)
        return JSONResponse(body, 503, headers={"Retry-After": str(RETRY_AFTER_S)})

    async def sync_tools(_request: Request) -> Response:
        return JSONResponse(dict(await operations.sync_tools()))

    async def agent_info(_request: Request) -> Response:
        return JSONResponse(dict(await operations.fetch_agent_info()))

    async def jobs_status(_request: Request) -> Response:
        return JSONResponse(dict(await operations.fetch_jobs_status()))

    return (
        BridgeRoute("/health", "GET", None, health),
        BridgeRoute("/ready", "GET", None, ready),
        BridgeRoute("/api/admin/sync-mcp-tools", "POST", ADMIN, sync_tools),
        BridgeRoute("/api/admin/agent-info", "GET", ADMIN, agent_info),
        BridgeRoute("/api/jobs-status", "GET", OPERATOR_READ, jobs_status),
    )
