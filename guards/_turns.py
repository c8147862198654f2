"""What the guards of turns share: the last turns, those that others began around us among them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from han_solo import CheckContext
from han_solo.letta.runs import RunView
from han_solo.turns.model import TurnRecord
from han_solo.turns.silence import cause_of_error, find_cause, tools_of


@dataclass(frozen=True, slots=True)
class Ended:
    """A turn that is over.

    ``cause`` says why it was silent, and is None for one with an answer; ``sender`` is None for a
    turn that was begun around us.
    """

    at: datetime
    cause: str | None
    stop_reason: str | None
    steps: int
    tools: tuple[str, ...]
    id: str
    sender: str | None


async def load_ended(context: CheckContext, limit: int) -> list[Ended]:
    """Return the last turns that are over, the newest first.

    A turn that Letta did not take, and one that somebody cancelled, say nothing of the agent and
    are left out. Of ours the row says more than Letta's run: it knows what the caller was told. One
    whose sender gave up or died has a row that says nothing yet; its run does.
    """
    # Some rows more than are asked for, so that our runs among the newest ones are known as such.
    rows = [row for row in await context.turns(2 * limit) if row.is_settled]
    known = {str(row.turn_id) for row in rows}
    runs = await context.letta.fetch_last_runs(context.agent_id)
    ended = [_of_row(row) for row in rows if row.outcome != "not_sent"]
    ended += [
        await _of_run(context, run)
        for run in runs[:limit]
        if run.is_over and str(run.turn_id) not in known
    ]
    ended = [turn for turn in ended if turn.cause != "cancelled"]
    return sorted(ended, key=lambda turn: turn.at, reverse=True)[:limit]


def _of_row(row: TurnRecord) -> Ended:
    return Ended(
        at=row.ended_at or row.queued_at,
        cause=(row.cause or "unknown") if row.outcome == "silent" else None,
        stop_reason=row.stop_reason,
        steps=row.steps or 0,
        tools=row.tools,
        id=row.run_id or str(row.turn_id),
        sender=row.sender,
    )


async def _of_run(context: CheckContext, run: RunView) -> Ended:
    turn = (await context.letta.fetch_kept(run)).turn
    cause = None
    if turn.is_silent:
        is_failed = run.stop_reason is None
        cause = cause_of_error(run.error) if is_failed else find_cause(turn)
    return Ended(
        at=run.completed_at or run.created_at,
        cause=cause,
        stop_reason=run.stop_reason,
        steps=turn.steps,
        tools=tools_of(turn),
        id=run.id,
        sender=None,
    )
