"""Errors on their way out: to an MCP caller and to an HTTP caller, one function each.

A ``HanSoloError`` is said in its own sentence and hint. Anything else is a fault of ours: it is
logged once, with its traceback and an id, and the caller is told the id and nothing of the fault,
which may hold an address with a password in it.
"""

from __future__ import annotations

import logging
import secrets
from typing import Final

from fastmcp.exceptions import ToolError
from pydantic import ValidationError
from starlette.responses import JSONResponse

from .. import logs
from ..errors import (
    AgentGone,
    BridgeError,
    Forbidden,
    HanSoloError,
    LettaConflict,
    LettaError,
    NotFound,
    PlanRefused,
    Unauthenticated,
    UsageError,
)

_log = logs.get("bridge")

RETRY_AFTER_S: Final = 5
"""What a caller is asked to wait when a part is away: the bridge looks for it about as often."""

_MAX_FAULTS_SAID: Final = 5

_STATUS: Final[tuple[tuple[type[HanSoloError], int], ...]] = (
    (Unauthenticated, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (AgentGone, 409),
    (LettaConflict, 409),
    (PlanRefused, 409),
    (UsageError, 400),
    (BridgeError, 503),
    (LettaError, 502),
)


def to_tool_error(error: Exception, *, tool: str) -> ToolError:
    """Translate what a tool raised into the error its caller reads."""
    if isinstance(error, HanSoloError):
        return ToolError(str(error), log_level=logging.INFO)
    fault = log_fault(error, where=tool)
    return ToolError(
        f"{tool} failed through a fault in han-solo itself (fault {fault}); the bridge's log has "
        "the details.",
        log_level=logging.INFO,  # said already
    )


def to_arguments_error(error: ValidationError, *, tool: str) -> ToolError:
    """Say in one sentence which arguments can not be used, without repeating their values."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    said = [
        f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}"
        for fault in found[:_MAX_FAULTS_SAID]
    ]
    more = f"; and {len(found) - len(said)} more" if len(found) > len(said) else ""
    return ToolError(
        f"{tool} was not called, its arguments can not be used: {'; '.join(said)}{more}.",
        log_level=logging.INFO,
    )


def to_response(error: Exception, *, where: str) -> JSONResponse:
    """Translate an error into ``{"error": sentence, "hint": what to do}`` and its status."""
    if not isinstance(error, HanSoloError):
        fault = log_fault(error, where=where)
        return build_error(
            500,
            f"The bridge failed through a fault of its own (fault {fault}).",
            "The bridge's log has the details under that id.",
        )
    if error.retryable:
        status = 503
    else:
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    response = build_error(status, error.message, error.hint, getattr(error, "reason", None))
    if status == 503:  # noqa: PLR2004 - the status says what it is
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
    if status == 401:  # noqa: PLR2004 - the same
        response.headers["WWW-Authenticate"] = 'Bearer realm="han-solo"'
    return response


def build_error(
    status: int, sentence: str, hint: str | None, reason: str | None = None
) -> JSONResponse:
    """Build an error response; ``hint`` and ``reason``, a stable name, are left out when None."""
    body = {"error": sentence, "hint": hint, "reason": reason}
    return JSONResponse({k: v for k, v in body.items() if v is not None}, status_code=status)


def log_fault(error: Exception, *, where: str) -> str:
    """Log a bug with its traceback and return the id under which the log has it."""
    fault = secrets.token_hex(4)
    _log.error("bridge.fault_raised", fault=fault, where=where, exc_info=error)
    return fault
