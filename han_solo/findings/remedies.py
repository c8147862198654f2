"""Attempts to repair, in Postgres. One is opened under the leader's epoch only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import asyncpg

from ..clock import Clock
from ..store.database import Database
from .model import RemedyOutcome, RemedyRow, Tries
from .queries import QUERIES

_MOST_TRIES: Final = 12
"""More failures of a remedy in a row make no difference to its pause."""


class Remedies:
    """The remedies of all guards and agents."""

    def __init__(self, db: Database, clock: Clock | None = None) -> None:
        self._db = db
        self._clock = clock or Clock()

    async def start_remedy(
        self,
        guard: str,
        agent_id: str,
        *,
        agent_name: str,
        finding_ids: Sequence[int],
        epoch: int,
    ) -> int | None:
        """Open a remedy and return its id; None when it may not run.

        It may not when somebody else leads, or when one of this guard runs already under this
        epoch. Those that an earlier leader left running are closed as abandoned.
        """
        now = self._clock.now()
        try:
            async with self._db.transaction() as connection:
                await QUERIES.abandon_remedies(connection, agent_id=agent_id, epoch=epoch, now=now)
                return await QUERIES.start_remedy(
                    connection,
                    guard=guard,
                    agent_id=agent_id,
                    agent_name=agent_name,
                    finding_ids=finding_ids,
                    epoch=epoch,
                    now=now,
                )
        except asyncpg.UniqueViolationError:
            return None

    async def abandon_remedies(self, agent_id: str, *, epoch: int) -> None:
        """Close what earlier leaders left running; asked by a leader as it begins."""
        async with self._db.transaction() as connection:
            await QUERIES.abandon_remedies(
                connection, agent_id=agent_id, epoch=epoch, now=self._clock.now()
            )

    async def finish_remedy(self, remedy_id: int, outcome: RemedyOutcome, what: str) -> bool:
        """Close a remedy; False when a later leader has closed it as abandoned."""
        async with self._db.transaction() as connection:
            closed = await QUERIES.finish_remedy(
                connection, id=remedy_id, outcome=outcome, what=what, now=self._clock.now()
            )
        return closed is not None

    async def load_tries(self, guard: str, agent_id: str) -> Tries:
        """Return how a guard's remedy went lately."""
        async with self._db.connection() as connection:
            rows = QUERIES.list_last_tries(
                connection, guard=guard, agent_id=agent_id, limit_rows=_MOST_TRIES
            )
            tries = [row async for row in rows]
        failures = 0
        for row in tries:
            if row["outcome"] == "done":
                break
            failures += 1
        if not failures:
            return Tries()
        return Tries(failures, tries[0]["finished_at"], frozenset(tries[0]["finding_ids"]))

    async def list_remedies(
        self, agent_id: str, guard: str | None = None, *, limit_rows: int = 50
    ) -> tuple[RemedyRow, ...]:
        """Return the attempts to repair, the newest first."""
        async with self._db.connection() as connection:
            rows = QUERIES.list_remedies(
                connection, agent_id=agent_id, guard=guard, limit_rows=limit_rows
            )
            return tuple([build_remedy(row) async for row in rows])

    async def list_remedies_of(self, finding_ids: Sequence[int]) -> tuple[RemedyRow, ...]:
        """Return the attempts to repair any of these findings, the oldest first."""
        async with self._db.connection() as connection:
            rows = QUERIES.list_remedies_of(connection, finding_ids=finding_ids)
            return tuple([build_remedy(row) async for row in rows])


def build_remedy(row: asyncpg.Record) -> RemedyRow:
    """Make a remedy of a row."""
    return RemedyRow(**{**dict(row), "finding_ids": tuple(row["finding_ids"])})
