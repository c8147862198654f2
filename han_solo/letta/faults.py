"""From the SDK's exceptions to our errors, in one place, with a sentence and no secrets.

Letta's answers echo what was sent: a 422 repeats the value of each field, a 409 the SQL with its
parameters. So only the reasons are taken from them, and whatever is known to be secret is struck
out of those as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import httpx

from han_solo.errors import (
    ApprovalPending,
    BridgeUrlRefused,
    LettaConflict,
    LettaError,
    LettaNotFound,
    LettaRefused,
    LettaUnauthorized,
    LettaUnavailable,
    LettaUnreachable,
    ModelFailed,
)

if TYPE_CHECKING:
    import letta_client

MAX_REASON_CHARS: Final = 300
"""Enough for every reason seen; a stack trace or a page of HTML is cut."""

_NOT_CONNECTED: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
)
"""After these nothing was sent."""

_PRIVATE_URL: Final = re.compile(
    r"Non-public IP not allowed|Blocked internal hostname|resolves to non-public IP"
)
_UNAUTHORIZED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_MSG: Final = re.compile(r"""'msg': (?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""")
_NOISE: Final = re.compile(
    r"\s*(?:\(sqlalchemy\.|\[SQL|\[parameters|, access level in).*"
    r"|\b(?:INTERNAL_SERVER_ERROR|NOT_FOUND|Value error)[:,] |Extra inputs are not permitted ?",
    re.DOTALL,
)
"""SQL with its parameters, the actor's repr, and words that only Letta's own code needs."""

_PENDING: Final = "waiting for approval on a tool call"

WAYS_ROUND: Final = (
    "Start Letta with han-solo letta serve, which allows the bridge's URL and nothing else; or "
    "give the bridge a public name (HAN_SOLO_BRIDGE_URL)."
)


@dataclass(frozen=True, slots=True)
class Target:
    """Whom we speak to, and what must never be repeated."""

    base_url: str
    has_password: bool
    secrets: tuple[str, ...]

    def scrub(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "[redacted]")
        return text


def describe(error: letta_client.APIError, target: Target, doing: str) -> LettaError:
    """Say what an exception of the SDK means.

    Args:
        error: as the SDK raised it.
        target: the server.
        doing: what was attempted, as in "reading the agent agent-...".
    """
    import letta_client  # noqa: PLC0415 - loaded already by whoever caught the error

    if isinstance(error.__cause__, _NOT_CONNECTED):
        return LettaUnreachable(
            f"Letta at {target.base_url} can not be reached while {doing}.",
            hint="Start it, or set LETTA_BASE_URL to where it is; han-solo doctor helps.",
        )
    if isinstance(error, letta_client.APITimeoutError):
        return LettaUnavailable(
            f"Letta at {target.base_url} gave no answer in time while {doing}.",
            hint="Whether it was done is unknown; look before trying again.",
        )
    if isinstance(error, letta_client.APIStatusError):
        return _describe_status(error.status_code, error.body, target, doing)
    return LettaUnavailable(
        f"Letta at {target.base_url} broke off the connection while {doing}.",
        hint="Whether it was done is unknown; look before trying again.",
    )


def not_letta(target: Target, doing: str) -> LettaUnavailable:
    """Say that an answer is not one of Letta's: a proxy, a login page, another program."""
    return LettaUnavailable(
        f"What answers at {target.base_url} while {doing} is not Letta.",
        hint="Check LETTA_BASE_URL and any proxy in between; it ends before /v1.",
    )


def _describe_status(status: int, body: object, target: Target, doing: str) -> LettaError:
    where = f"Letta at {target.base_url}"
    reason = reason_of(body, target)
    if _is_the_models(body):  # asked first: its 401 is the provider's, not ours
        return ModelFailed(
            f"The model of {where} failed with {status} while {doing}: {reason}",
            hint="See the provider's key, quota and status; `han-solo doctor` shows the model.",
            status_code=status,
        )
    if status in _UNAUTHORIZED:
        fault = "refuses the password" if target.has_password else "asks for a password"
        return LettaUnauthorized(
            f"{where} {fault} while {doing}.",
            hint="Set HAN_SOLO_LETTA_PASSWORD to the server's LETTA_SERVER_PASSWORD.",
            status_code=status,
        )
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return LettaUnavailable(
            f"{where} failed with {status} while {doing}: {reason}",
            hint="Whether it was done is unknown; Letta's log says why it failed.",
            status_code=status,
        )
    if status < HTTPStatus.BAD_REQUEST or (
        status == HTTPStatus.NOT_FOUND and not _is_about_a_thing(body)
    ):
        return not_letta(target, doing)
    return _describe_refusal(status, reason, where, doing)


def _describe_refusal(status: int, reason: str, where: str, doing: str) -> LettaError:
    if status == HTTPStatus.NOT_FOUND:
        return LettaNotFound(
            f"{where} does not know it while {doing}: {reason}", status_code=status
        )
    if status == HTTPStatus.CONFLICT and _PENDING in reason:
        return ApprovalPending(
            f"{where} takes no message while {doing}: a tool call waits for approval.",
            hint="Approve or deny it in Letta first; nothing was sent.",
            status_code=status,
        )
    if status == HTTPStatus.CONFLICT:
        return LettaConflict(
            f"{where} reports a conflict while {doing}: {reason}", status_code=status
        )
    if _PRIVATE_URL.search(reason):
        return BridgeUrlRefused(
            f"{where} allows no MCP server on a private address while {doing}: {reason}",
            hint=WAYS_ROUND,
            status_code=status,
        )
    return LettaRefused(f"{where} refuses {doing} ({status}): {reason}", status_code=status)


def _is_the_models(body: object) -> bool:
    """Say whether it was the model behind Letta that failed; its kinds begin with ``llm_``."""
    error = body.get("error") if isinstance(body, Mapping) else None
    kind = error.get("type") if isinstance(error, Mapping) else None
    return isinstance(kind, str) and kind.startswith("llm_")


def _is_about_a_thing(body: object) -> bool:
    """Tell Letta's 404 of a thing from a 404 of the path: a proxy's page, or another program."""
    if not isinstance(body, Mapping):
        return False
    detail = body.get("detail")
    return bool(detail) and detail != "Not Found"


def reason_of(body: object, target: Target) -> str:
    """Return Letta's reason as one sentence, without values, SQL or secrets."""
    reason = target.scrub(_NOISE.sub("", " ".join(_reasons(body))).strip())
    if len(reason) > MAX_REASON_CHARS:
        reason = reason[:MAX_REASON_CHARS].rstrip() + " ..."
    return (reason or "it gives no reason").rstrip(".") + "."


def _reasons(body: object) -> Iterable[str]:
    if not isinstance(body, Mapping):
        return
    error = body.get("error")
    if isinstance(error, Mapping):
        yield from (str(error[key]) for key in ("message", "detail") if error.get(key))
        return
    detail = body.get("detail")
    if isinstance(detail, Mapping):
        yield str(detail.get("message") or detail.get("code") or "")
    elif isinstance(detail, list):
        yield from (
            str(item["msg"]) for item in detail if isinstance(item, Mapping) and "msg" in item
        )
    elif isinstance(detail, str):
        # A validation error is the repr of a list, with the values that were sent in it.
        messages = [first or second for first, second in _MSG.findall(detail)]
        yield from dict.fromkeys(messages) if messages else [detail]
