"""What came of a turn whose answer nobody heard, as Letta's run of it tells.

A timeout, a lost connection and a killed sender leave a turn open while it goes on in Letta. It is
settled from its run: by the next sender, who must not begin before it is over, or by whoever asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

from .. import logs
from ..clock import Clock
from ..errors import (
    ApprovalPending,
    HanSoloError,
    LettaError,
    LettaNotFound,
    LettaRefused,
    LettaUnauthorized,
    LettaUnreachable,
    ModelFailed,
    TurnUnknown,
)
from ..letta.runs import RunView
from ..letta.turns import Turn
from ..store.database import Connection
from . import records
from .gateway import MessageGateway
from .model import Ending
from .silence import SilentTurn, cause_of_error, find_cause

ARRIVAL_S: Final = 5.0
"""Letta opens a run well within a second of taking a message. One without a run that was sent
longer ago than this was not taken, unless the whole server stood still."""

DEAD_AFTER_S: Final = 300.0
"""A run that did nothing for so long has no process any more: Letta gives a model some 60 s a try
and a tool 180 s, and stores each step as it ends. A run that Letta was killed in stays open for
ever."""

_log = logs.get("turns")


class Settler:
    """Settles the open turns of one agent."""

    def __init__(self, gateway: MessageGateway, agent_id: str, clock: Clock) -> None:
        self._gateway = gateway
        self._agent_id = agent_id
        self._clock = clock

    async def settle(
        self, connection: Connection, unsettled: Mapping[UUID, float]
    ) -> tuple[UUID, ...]:
        """Write down what came of turns, and return those that may still run.

        Args:
            connection: for the rows.
            unsettled: turns, each with the seconds since it was begun.

        Raises:
            LettaError: Letta does not say.
        """
        if not unsettled:
            return ()
        runs = await self._gateway.find_runs(self._agent_id, unsettled.keys())
        still_open = []
        for turn_id, age_s in unsettled.items():
            ending = await self._find_ending(runs.get(turn_id), age_s)
            if ending is None:
                still_open.append(turn_id)
                continue
            await records.end_turn(connection, turn_id, ending, None)
            _log.info(
                "turn.settled",
                agent_id=self._agent_id,
                turn_id=str(turn_id),
                outcome=ending.outcome,
                cause=ending.cause,
            )
        return tuple(still_open)

    async def find_running(self) -> tuple[RunView, ...]:
        """Return the agent's runs that are not over and not dead, oldest first."""
        active = await self._gateway.fetch_active_runs(self._agent_id)
        return tuple([run for run in reversed(active) if not await self._is_dead(run)])

    async def conclude(self, run: RunView) -> Ending:
        """Say how the turn of a run ended that is over."""
        kept = await self._gateway.fetch_kept(run)
        if run.stop_reason is not None:
            return judge(kept.turn, is_kept=kept.has_message)
        return Ending(
            "silent" if kept.turn.is_silent else "answered",
            cause=cause_of_error(run.error),
            turn=kept.turn,
            run_id=run.id,
            is_kept=kept.has_message,
            error=run.error,
        )

    async def explain(self, turn_id: UUID, error: LettaError) -> tuple[Ending, HanSoloError | None]:
        """Say what an error of a message means for its turn: the run knows what became of it.

        Returns:
            How the turn ended, and the error to raise; none when the agent had answered after all.
        """
        if isinstance(error, ApprovalPending):
            ending = Ending("silent", cause="pending_approval", is_kept=False)
            return ending, self.build_silent(turn_id, ending, error)
        if _was_not_taken(error):
            return Ending("not_sent"), error
        run: RunView | None = None
        concluded: Ending | None = None
        try:
            run = await self.find_run(turn_id)
            concluded = await self.conclude(run) if run and run.is_over else None
        except LettaError as second:
            _log.debug("turn.run_not_found", agent_id=self._agent_id, reason=str(second))
        if run is None and isinstance(error, ModelFailed):
            concluded = Ending("silent", cause="provider_error", error=error.message)
        if concluded is not None:
            return concluded, self.build_silent(turn_id, concluded, error)
        unknown = TurnUnknown(
            f"{error.message} The turn {turn_id} may still run.",
            agent_id=self._agent_id,
            turn_id=turn_id,
            run_id=run.id if run else None,
            hint="Do not send it again: the agent would hear it twice. Its record says later what "
            "came of it.",
        )
        unknown.__cause__ = error
        return Ending("unknown", run_id=unknown.run_id), unknown

    def build_silent(
        self, turn_id: UUID, ending: Ending, error: LettaError | None = None
    ) -> SilentTurn | None:
        """Build the error of a silent turn; None for one that was answered."""
        if ending.outcome != "silent":
            return None
        silent = SilentTurn(
            agent_id=self._agent_id,
            turn_id=turn_id,
            ending=ending,
            status_code=error.status_code if error else None,
        )
        silent.__cause__ = error
        return silent

    async def find_run(self, turn_id: UUID) -> RunView | None:
        return (await self._gateway.find_runs(self._agent_id, {turn_id})).get(turn_id)

    async def find_run_id(self, turn_id: UUID) -> str | None:
        """Find the run's id for the record; without it the record is poorer, and that is all."""
        try:
            run = await self.find_run(turn_id)
        except LettaError:
            return None
        return run.id if run else None

    async def _find_ending(self, run: RunView | None, age_s: float) -> Ending | None:
        if run is None:
            return None if age_s < ARRIVAL_S else Ending("not_sent")
        if run.is_over:
            return await self.conclude(run)
        if not await self._is_dead(run):
            return None
        kept = await self._gateway.fetch_kept(run)
        return Ending(
            "silent" if kept.turn.is_silent else "answered",
            cause="unknown",
            turn=kept.turn,
            run_id=run.id,
            is_kept=kept.has_message,
        )

    async def _is_dead(self, run: RunView) -> bool:
        limit = self._clock.now() - timedelta(seconds=DEAD_AFTER_S)
        return run.created_at < limit and await self._gateway.fetch_last_activity(run) < limit


def _was_not_taken(error: LettaError) -> bool:
    """Say whether the error means that Letta took no message."""
    refused = isinstance(error, LettaRefused) and error.status_code is not None
    return refused or isinstance(error, (LettaUnreachable, LettaUnauthorized, LettaNotFound))


def judge(turn: Turn, *, is_kept: bool) -> Ending:
    """Say how a turn ended that Letta answered."""
    return Ending(
        "silent" if turn.is_silent else "answered",
        cause=find_cause(turn),
        turn=turn,
        run_id=turn.run_id,
        is_kept=is_kept,
    )
