"""Which tools a caller sees and may call: its kind's, as far as its token's scopes reach.

Letta registers what its token is shown, so this filter is what keeps the operator's tools out of
the agent. The same test is made again at the call: a list can be stale, or never have been asked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from fastmcp.exceptions import ToolError, ValidationError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import Tool, ToolResult
from mcp_types import CallToolRequestParams, ListToolsRequest
from pydantic import ValidationError as ArgumentsError

from .. import logs
from ..errors import AuthError, Forbidden
from ..principals import Principal, is_shown
from ..registry import Registry
from .faults import to_arguments_error

_log = logs.get("bridge")

Caller = Callable[[], Principal]


class ShownTools(Middleware):
    """FastMCP middleware over ``tools/list`` and ``tools/call``."""

    def __init__(self, registry: Registry, caller: Caller) -> None:
        self._registry = registry
        self._caller = caller

    async def on_list_tools(
        self,
        context: MiddlewareContext[ListToolsRequest],
        call_next: CallNext[ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        """Leave out what the caller may not call."""
        principal = self._caller()
        return [tool for tool in await call_next(context) if self._is_open(tool.name, principal)]

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Refuse what the caller may not call; log the call, not its arguments."""
        name = context.message.name
        principal = self._caller()
        started = time.perf_counter()
        outcome = "failed"
        try:
            self._require_open(name, principal)
            result = await call_next(context)
            outcome = "done"
        except ValidationError as error:
            outcome = "refused"
            if isinstance(error.__cause__, ArgumentsError):
                raise to_arguments_error(error.__cause__, tool=name) from error
            raise
        except AuthError as error:
            outcome = "refused"
            raise ToolError(str(error), log_level=logging.INFO) from error
        finally:
            _log.info(
                "tool.called",
                tool=name,
                outcome=outcome,
                duration_ms=round((time.perf_counter() - started) * 1000, 1),
                principal=principal.name,
                agent_id=principal.agent_id,
            )
        return result

    def _is_open(self, name: str, principal: Principal) -> bool:
        spec = self._registry.get(name)
        return (
            spec is not None
            and is_shown(spec.audience, principal.kind)
            and principal.may(spec.scope)
        )

    def _require_open(self, name: str, principal: Principal) -> None:
        """Refuse a tool of a higher audience in the words of one that does not exist."""
        spec = self._registry.get(name)
        if spec is None or not is_shown(spec.audience, principal.kind):
            raise Forbidden(
                f"There is no tool {name!r} for a token of kind {principal.kind}.",
                hint="tools/list has those that there are.",
            )
        principal.require(spec.scope)
