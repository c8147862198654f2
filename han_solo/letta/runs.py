"""Letta's runs: its own record of each turn, which outlives our wait for the answer.

After a timeout, a lost connection or a killed process the run says whether the message arrived,
whether the turn still goes on, and what came of it. A run bears no mark of the message it began
with, and the message itself is stored only with the first answer of the model. So the turn's id
travels twice: as the message's ``otid``, and in ``assistant_message_tool_kwarg``, a setting of the
request that 0.16.8 keeps in the run and reads for no agent of today.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import httpx

from . import fields, turns
from .faults import MAX_REASON_CHARS
from .link import Link

MARK: Final = "assistant_message_tool_kwarg"

OVER: Final = frozenset({"completed", "failed", "cancelled", "expired"})
"""The other words are ``created`` and ``running``; a turn that is not in the background stays
``created`` until it is over."""

MAX_RUNS: Final = 200
"""How far back a turn is looked for: it is asked for soon after it was sent."""

MAX_MESSAGES: Final = 1_000
"""Of one run: fifty steps make some two hundred."""


_CODE: Final = re.compile(r"^[A-Z_]+: ")
"""Letta's name of the kind of error, before its text."""


@dataclass(frozen=True, slots=True)
class RunView:
    """One run. ``turn_id`` is None when the message was not sent by han-solo.

    ``error`` is Letta's own text about a run that failed; it may repeat what a provider said.
    """

    id: str
    status: str
    stop_reason: str | None
    created_at: datetime
    completed_at: datetime | None
    turn_id: UUID | None
    error: str | None

    @property
    def is_over(self) -> bool:
        return self.status in OVER


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """What Letta kept of a run: the turn as its answer would have been.

    ``has_message`` says whether the message that began it is in the agent's context. A step in
    which the model wrote nothing leaves nothing behind, and is not counted.
    """

    turn: turns.Turn
    has_message: bool


def build_message(message: str, turn_id: UUID, max_steps: int | None) -> Mapping[str, object]:
    """Build the body of a message that can be found again by its turn's id."""
    body: dict[str, object] = {
        "messages": [{"role": "user", "content": message, "otid": str(turn_id)}],
        MARK: str(turn_id),
    }
    if max_steps is not None:
        body["max_steps"] = max_steps
    return body


async def fetch_runs(link: Link, agent_id: str, *, active: bool) -> tuple[RunView, ...]:
    """Fetch the agent's last runs, newest first; with ``active``, those that are not over."""
    params: dict[str, object] = {"agent_id": agent_id, "limit": MAX_RUNS}
    params |= {"active": True} if active else {}
    body = await link.read(
        f"listing the runs of the agent {agent_id}",
        lambda letta: letta.get("/v1/runs/", cast_to=httpx.Response, options={"params": params}),
    )
    return tuple(map(_parse_run, fields.as_list(body, "runs")))


async def fetch_kept(link: Link, run: RunView) -> KeptTurn:
    """Fetch what Letta kept of a run."""
    return _build_kept(run, await _fetch_messages(link, run))


async def fetch_last_activity(link: Link, run: RunView) -> datetime:
    """Return when the run last did something: its newest message, or else its beginning."""
    dates = [
        found
        for message in await _fetch_messages(link, run)
        if (found := fields.moment(message.get("date"))) is not None
    ]
    return max([run.created_at, *dates])


async def _fetch_messages(link: Link, run: RunView) -> list[fields.Json]:
    body = await link.read(
        f"reading the messages of {run.id}",
        lambda letta: letta.get(
            f"/v1/runs/{run.id}/messages",
            cast_to=httpx.Response,
            options={"params": {"limit": MAX_MESSAGES, "order": "asc"}},
        ),
    )
    return [fields.as_object(item, "message") for item in fields.as_list(body, "messages")]


def _build_kept(run: RunView, messages: list[fields.Json]) -> KeptTurn:
    # The answer of a turn does not repeat the message it began with; the run's messages do.
    asked = str(run.turn_id)
    answered = [item for item in messages if item.get("otid") != asked]
    steps = {item.get("step_id") for item in answered} - {None}
    body = {
        "messages": answered,
        "stop_reason": {"stop_reason": run.stop_reason or run.status},
        "usage": {"step_count": len(steps)},
    }
    return KeptTurn(
        turn=turns.parse_turn(body, run_id=run.id),
        has_message=len(answered) < len(messages),
    )


def _parse_run(source: object) -> RunView:
    body = fields.as_object(source, "run")
    config = fields.opt_object(body.get("request_config"))
    metadata = fields.opt_object(body.get("metadata"))
    created_at = fields.moment(body.get("created_at"))
    return RunView(
        id=fields.need_str(body, "id", "run"),
        status=fields.need_str(body, "status", "run"),
        stop_reason=fields.opt_str(body, "stop_reason"),
        created_at=created_at or datetime.fromtimestamp(0, UTC),
        completed_at=fields.moment(body.get("completed_at")),
        turn_id=_turn_id(config.get(MARK)),
        error=_clean(fields.opt_str(metadata, "error")),
    )


def _clean(error: str | None) -> str | None:
    """Cut the text to its reason: a provider's answer may hold a page of HTML."""
    if error is None:
        return None
    reason = " ".join(_CODE.sub("", error).split())
    return reason if len(reason) <= MAX_REASON_CHARS else reason[:MAX_REASON_CHARS] + " ..."


def _turn_id(mark: object) -> UUID | None:
    """Read the mark; a message that was not ours has Letta's default word there."""
    try:
        return UUID(str(mark))
    except ValueError:
        return None
