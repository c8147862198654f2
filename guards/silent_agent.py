"""The guard against an agent that says nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from han_solo import CheckContext, Finding, guard
from han_solo.letta.runs import RunView
from han_solo.turns.model import TurnRecord
from han_solo.turns.silence import cause_of_error, find_cause, hint_for

LAST_TURNS = 20
LAST_RUNS = 5
"""Runs that others began are read one by one, so only a few: the question is how it stands now."""

CRITICAL_FROM = 2
"""One silent turn happens; the next one too, and the agent is mute."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """A turn that is over; ``cause`` is None for one with an answer."""

    at: datetime
    cause: str | None
    stop_reason: str | None
    steps: int | None
    tools: tuple[str, ...]
    id: str


@guard(every_s=60, incident="silent-turn")
async def silent_agent(context: CheckContext) -> tuple[Finding, ...]:
    """Find an agent whose last turns held no word for the user, each with its cause.

    Turns that others began, as in Letta's own page, are looked at too. The finding is gone with the
    first answer.
    """
    ended = [_of_record(turn) for turn in await context.turns(LAST_TURNS) if turn.is_settled]
    ended += await _load_foreign(context)
    ended.sort(key=lambda turn: turn.at, reverse=True)
    silent = list(takewhile(lambda turn: turn.cause is not None, ended))
    by_cause: dict[str, list[_Ended]] = {}
    for turn in silent:
        by_cause.setdefault(str(turn.cause), []).append(turn)
    return tuple(_build(cause, turns, len(silent)) for cause, turns in by_cause.items())


def _of_record(turn: TurnRecord) -> _Ended:
    is_silent = turn.outcome == "silent"
    return _Ended(
        at=turn.ended_at or turn.queued_at,
        cause=(turn.cause or "unknown") if is_silent else None,
        stop_reason=turn.stop_reason,
        steps=turn.steps,
        tools=turn.tools,
        id=turn.run_id or str(turn.turn_id),
    )


async def _load_foreign(context: CheckContext) -> list[_Ended]:
    runs = [
        run
        for run in await context.letta.fetch_last_runs(context.agent_id)
        if run.turn_id is None and run.is_over
    ]
    return [await _of_run(context, run) for run in runs[:LAST_RUNS]]


async def _of_run(context: CheckContext, run: RunView) -> _Ended:
    turn = (await context.letta.fetch_kept(run)).turn
    cause = None
    if turn.is_silent:
        cause = find_cause(turn) if run.stop_reason else cause_of_error(run.error)
    return _Ended(
        at=run.completed_at or run.created_at,
        cause=cause,
        stop_reason=run.stop_reason,
        steps=turn.steps,
        tools=tuple(call.name for call in turn.tool_calls),
        id=run.id,
    )


def _build(cause: str, turns: list[_Ended], silent: int) -> Finding:
    last, first = turns[0], turns[-1]
    tools = ", ".join(dict.fromkeys(last.tools)) or "none"
    count = "The last turn" if silent == 1 else f"{len(turns)} of the last {silent} turns"
    return Finding(
        key=cause,
        summary=f"{count} held no word for the user ({cause}): stop reason "
        f"{last.stop_reason or 'none'}, {last.steps or 0} steps, tools: {tools}.",
        hint=hint_for(cause),
        severity="critical" if silent >= CRITICAL_FROM else "warning",
        detail={
            "cause": cause,
            "turns": len(turns),
            "since": first.at.isoformat(),
            "last": last.id,
            "steps": last.steps,
            "tools": list(last.tools),
        },
    )
