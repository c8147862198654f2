"""Findings in Postgres: opened, seen again, resolved; and the remedies that were tried.

Who calls: the guard runner; status, doctor and the page read. A finding has one open row for a
guard, an agent and a key, so that it is told once and not at every look. A remedy is opened only
under the leader's epoch, which the database compares: a process that lost the lead while it was
frozen can start nothing when it wakes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import asyncpg

from ..declare import Finding
from ..store.database import Connection
from .model import (
    COULD_NOT_LOOK,
    LEAST_ALERT_PAUSE,
    LONGEST_ALERT_PAUSE,
    OLDEST_NEWS,
    Alert,
    FindingRow,
    GuardRun,
    Recorded,
)
from .queries import QUERIES
from .remedies import Remedies, build_remedy


class Findings(Remedies):
    """The findings of all agents."""

    async def count_runs(self, guard: str, agent_id: str) -> int:
        """Return how often the guard was recorded; asked before a look, given with its result."""
        async with self._db.connection() as connection:
            return await QUERIES.count_runs(connection, guard=guard, agent_id=agent_id) or 0

    async def record(
        self,
        guard: str,
        agent_id: str,
        found: Sequence[Finding],
        *,
        duration_ms: int = 0,
        runs: int | None = None,
    ) -> Recorded:
        """Record what a guard sees now: what is new is opened, what is gone is resolved.

        Args:
            guard: the guard.
            agent_id: the agent.
            found: what it saw.
            duration_ms: how long it looked.
            runs: ``count_runs`` before the look. When another look was recorded since, this one
                may be older than what that one led to: nothing is recorded, and ``is_stale``.
        """
        now = self._clock.now()
        open_ids, opened_ids = [], []
        async with self._db.transaction() as connection:
            noted = await QUERIES.note_run(
                connection,
                guard=guard,
                agent_id=agent_id,
                finished_at=now,
                looked_at=now,
                duration_ms=duration_ms,
                findings=len(found),
                error=None,
                runs=runs,
            )
            if noted is None:
                return Recorded(is_stale=True)
            for finding in found:
                row = await self._see(connection, guard, agent_id, finding, now)
                open_ids.append(row["id"])
                if row["is_new"]:
                    opened_ids.append(row["id"])
            gone = QUERIES.resolve_others(
                connection, guard=guard, agent_id=agent_id, seen_ids=open_ids, now=now
            )
            resolved = {row["id"]: row["key"] async for row in gone}
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
            await QUERIES.note_run(
                connection,
                guard=guard,
                agent_id=agent_id,
                finished_at=now,
                looked_at=None,
                duration_ms=duration_ms,
                findings=0 if finding is None else 1,
                error=error,
                runs=None,
            )
            if finding is not None:
                assert finding.key == COULD_NOT_LOOK
                row = await self._see(connection, guard, agent_id, finding, now)
                recorded = Recorded((row["id"],), (row["id"],) if row["is_new"] else ())
        return recorded

    async def resolve_unwatched(
        self, agent_id: str, watched: Collection[str]
    ) -> tuple[tuple[str, str], ...]:
        """Close what guards found that are off, or are no more; nobody else ever would.

        Args:
            agent_id: the agent.
            watched: names of the guards that run.

        Returns:
            Guard and key of each that was closed.
        """
        async with self._db.transaction() as connection:
            gone = QUERIES.resolve_unwatched(
                connection, agent_id=agent_id, watched=sorted(watched), now=self._clock.now()
            )
            return tuple([(row["guard"], row["key"]) async for row in gone])

    @staticmethod
    async def _see(
        connection: Connection, guard: str, agent_id: str, finding: Finding, now: datetime
    ) -> asyncpg.Record:
        return await QUERIES.see_finding(
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
            rows = QUERIES.list_open(connection, agent_id=agent_id, guard=guard)
            return tuple([FindingRow(**dict(row)) async for row in rows])

    async def history(
        self, agent_id: str, guard: str | None = None, *, limit_rows: int = 50
    ) -> tuple[FindingRow, ...]:
        """Return findings, open or not, the newest first."""
        async with self._db.connection() as connection:
            rows = QUERIES.list_history(
                connection, agent_id=agent_id, guard=guard, limit_rows=limit_rows
            )
            return tuple([FindingRow(**dict(row)) async for row in rows])

    async def list_runs(self, agent_id: str) -> tuple[GuardRun, ...]:
        """Return the last run of each guard, by name."""
        async with self._db.connection() as connection:
            rows = QUERIES.list_runs(connection, agent_id=agent_id)
            return tuple([GuardRun(**dict(row)) async for row in rows])

    # Alerts

    async def claim_alerts(self, agent_id: str) -> tuple[Alert, ...]:
        """Take the alerts that are due on oneself, so that no two processes send them.

        An alert is due at a finding's opening, and once more when a warning becomes critical. One
        that is not noted as sent is due again later: so it is told even when this process dies.
        """
        now = self._clock.now()
        async with self._db.transaction() as connection:
            claimed = QUERIES.claim_alerts(
                connection,
                agent_id=agent_id,
                now=now,
                least_pause=LEAST_ALERT_PAUSE,
                longest_pause=LONGEST_ALERT_PAUSE,
                not_before=now - OLDEST_NEWS,
            )
            rows = sorted([FindingRow(**dict(row)) async for row in claimed], key=lambda r: r.id)
            tried = QUERIES.list_remedies_of(connection, finding_ids=[row.id for row in rows])
            remedies = [build_remedy(row) async for row in tried]
        last = {finding_id: remedy for remedy in remedies for finding_id in remedy.finding_ids}
        return tuple(Alert(row, last.get(row.id)) for row in rows)

    async def note_alerted(self, alerts: Sequence[Alert]) -> None:
        """Note that these went out."""
        async with self._db.transaction() as connection:
            for alert in alerts:
                await QUERIES.note_alerted(
                    connection,
                    id=alert.finding.id,
                    severity=alert.finding.severity,
                    now=self._clock.now(),
                )

    # Remedies
