"""Findings in Postgres: opened, seen again, resolved; and the remedies that were tried.

Who calls: the guard runner; status, doctor and the page read. A finding has one open row for a
guard, an agent and a key, so that it is told once and not at every look. A remedy is opened only
under the leader's epoch, which the database compares: a process that lost the lead while it was
frozen can start nothing when it wakes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

import asyncpg

from ..clock import Clock
from ..declare import Finding
from ..store.database import Connection, Database
from ..store.queries import load_queries
from .model import COULD_NOT_LOOK, FindingRow, GuardRun, Recorded, RemedyOutcome, RemedyRow


class _Queries(Protocol):
    async def see_finding(
        self,
        conn: Connection,
        *,
        guard: str,
        agent_id: str,
        key: str,
        severity: str,
        summary: str,
        hint: str,
        detail: Mapping[str, object],
        now: datetime,
    ) -> asyncpg.Record: ...
    def resolve_others(
        self,
        conn: Connection,
        *,
        guard: str,
        agent_id: str,
        seen_ids: Sequence[int],
        now: datetime,
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def note_run(
        self,
        conn: Connection,
        *,
        guard: str,
        agent_id: str,
        finished_at: datetime,
        looked_at: datetime | None,
        duration_ms: int,
        findings: int,
        error: str | None,
    ) -> str: ...
    def list_runs(self, conn: Connection, *, agent_id: str) -> AsyncIterator[asyncpg.Record]: ...
    def list_open(
        self, conn: Connection, *, agent_id: str, guard: str | None
    ) -> AsyncIterator[asyncpg.Record]: ...
    def list_history(
        self, conn: Connection, *, agent_id: str, guard: str | None, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    def list_unalerted(
        self, conn: Connection, *, agent_id: str
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def claim_alert(self, conn: Connection, *, id: int, now: datetime) -> int | None: ...  # noqa: A002 - the column's name
    async def return_alert(self, conn: Connection, *, id: int) -> str: ...  # noqa: A002 - the column's name
    async def abandon_remedies(
        self, conn: Connection, *, agent_id: str, epoch: int, now: datetime
    ) -> str: ...
    async def start_remedy(
        self,
        conn: Connection,
        *,
        guard: str,
        agent_id: str,
        agent_name: str,
        finding_ids: Sequence[int],
        epoch: int,
        now: datetime,
    ) -> int | None: ...
    async def finish_remedy(
        self,
        conn: Connection,
        *,
        id: int,  # noqa: A002 - the column's name
        outcome: str,
        what: str | None,
        now: datetime,
    ) -> int | None: ...
    def list_remedies(
        self, conn: Connection, *, agent_id: str, guard: str | None, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...


_QUERIES: Final = load_queries("findings", _Queries)


class Findings:
    """The findings of all agents."""

    def __init__(self, db: Database, clock: Clock | None = None) -> None:
        self._db = db
        self._clock = clock or Clock()

    async def record(
        self, guard: str, agent_id: str, found: Sequence[Finding], *, duration_ms: int = 0
    ) -> Recorded:
        """Record what a guard sees now: what is new is opened, what is gone is resolved."""
        now = self._clock.now()
        open_ids, opened_ids = [], []
        async with self._db.transaction() as connection:
            for finding in found:
                row = await self._see(connection, guard, agent_id, finding, now)
                open_ids.append(row["id"])
                if row["is_new"]:
                    opened_ids.append(row["id"])
            gone = _QUERIES.resolve_others(
                connection, guard=guard, agent_id=agent_id, seen_ids=open_ids, now=now
            )
            resolved = {row["id"]: row["key"] async for row in gone}
            await _QUERIES.note_run(
                connection,
                guard=guard,
                agent_id=agent_id,
                finished_at=now,
                looked_at=now,
                duration_ms=duration_ms,
                findings=len(found),
                error=None,
            )
        return Recorded(tuple(open_ids), tuple(opened_ids), resolved)

    async def record_failure(
        self,
        guard: str,
        agent_id: str,
        error: str,
        *,
        finding: Finding | None = None,
        duration_ms: int = 0,
    ) -> Recorded:
        """Record that a guard could not look; what it saw earlier stays open.

        Args:
            guard: the guard.
            agent_id: the agent.
            error: why, in a sentence.
            finding: what to open for it, under the key ``COULD_NOT_LOOK``; None when another
                guard tells of the same cause.
            duration_ms: how long it tried.
        """
        now = self._clock.now()
        recorded = Recorded()
        async with self._db.transaction() as connection:
            if finding is not None:
                assert finding.key == COULD_NOT_LOOK
                row = await self._see(connection, guard, agent_id, finding, now)
                recorded = Recorded((row["id"],), (row["id"],) if row["is_new"] else ())
            await _QUERIES.note_run(
                connection,
                guard=guard,
                agent_id=agent_id,
                finished_at=now,
                looked_at=None,
                duration_ms=duration_ms,
                findings=len(recorded.open_ids),
                error=error,
            )
        return recorded

    @staticmethod
    async def _see(
        connection: Connection, guard: str, agent_id: str, finding: Finding, now: datetime
    ) -> asyncpg.Record:
        return await _QUERIES.see_finding(
            connection,
            guard=guard,
            agent_id=agent_id,
            key=finding.key,
            severity=finding.severity,
            summary=finding.summary,
            hint=finding.hint,
            detail=finding.detail,
            now=now,
        )

    async def list_open(self, agent_id: str, guard: str | None = None) -> tuple[FindingRow, ...]:
        """Return the open findings, the oldest first."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_open(connection, agent_id=agent_id, guard=guard)
            return tuple([FindingRow(**dict(row)) async for row in rows])

    async def history(
        self, agent_id: str, guard: str | None = None, *, limit_rows: int = 50
    ) -> tuple[FindingRow, ...]:
        """Return findings, open or not, the newest first."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_history(
                connection, agent_id=agent_id, guard=guard, limit_rows=limit_rows
            )
            return tuple([FindingRow(**dict(row)) async for row in rows])

    async def list_runs(self, agent_id: str) -> tuple[GuardRun, ...]:
        """Return the last run of each guard, by name."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_runs(connection, agent_id=agent_id)
            return tuple([GuardRun(**dict(row)) async for row in rows])

    # Alerts

    async def list_unalerted(self, agent_id: str) -> tuple[FindingRow, ...]:
        """Return the findings whose alert did not go out yet, those repaired meanwhile too."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_unalerted(connection, agent_id=agent_id)
            return tuple([FindingRow(**dict(row)) async for row in rows])

    async def claim_alert(self, finding_id: int) -> bool:
        """Take an alert on oneself, before it is sent, so that no two send it."""
        async with self._db.transaction() as connection:
            claimed = await _QUERIES.claim_alert(connection, id=finding_id, now=self._clock.now())
        return claimed is not None

    async def return_alert(self, finding_id: int) -> None:
        """Give an alert back that did not go out; the next run tries again."""
        async with self._db.transaction() as connection:
            await _QUERIES.return_alert(connection, id=finding_id)

    # Remedies

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
                await _QUERIES.abandon_remedies(connection, agent_id=agent_id, epoch=epoch, now=now)
                return await _QUERIES.start_remedy(
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

    async def finish_remedy(self, remedy_id: int, outcome: RemedyOutcome, what: str) -> bool:
        """Close a remedy; False when a later leader has closed it as abandoned."""
        async with self._db.transaction() as connection:
            closed = await _QUERIES.finish_remedy(
                connection, id=remedy_id, outcome=outcome, what=what, now=self._clock.now()
            )
        return closed is not None

    async def list_remedies(
        self, agent_id: str, guard: str | None = None, *, limit_rows: int = 50
    ) -> tuple[RemedyRow, ...]:
        """Return the attempts to repair, the newest first."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_remedies(
                connection, agent_id=agent_id, guard=guard, limit_rows=limit_rows
            )
            return tuple([_build_remedy(row) async for row in rows])


def _build_remedy(row: asyncpg.Record) -> RemedyRow:
    return RemedyRow(**{**dict(row), "finding_ids": tuple(row["finding_ids"])})
