"""The runs of jobs in Postgres: the lease, the heartbeat, the one success of a period.

Who calls: ``engine`` runs a job under a lease from here; the commands, the bridge and the guard of
overdue jobs read. Times are the database's, so machines whose clocks differ agree on what expired.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

import asyncpg

from ..clock import Clock
from ..declare import JobSpec
from ..store.database import Connection, Database
from ..store.queries import load_queries
from .model import (
    FIRST_PAUSE_S,
    LEASE_S,
    LONGEST_PAUSE_S,
    MAX_ATTEMPTS,
    Declined,
    JobRun,
    Outcome,
    Pause,
    StartedBy,
)
from .periods import Period


class _Queries(Protocol):
    async def abandon_expired(self, conn: Connection, *, job: str) -> str: ...
    async def fetch_running(self, conn: Connection, *, job: str) -> asyncpg.Record | None: ...
    def list_period(
        self, conn: Connection, *, job: str, period: str
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def start_run(
        self,
        conn: Connection,
        *,
        job: str,
        period: str,
        due_at: datetime,
        is_extra: bool,
        started_by: str,
        holder: str,
        lease_s: float,
    ) -> asyncpg.Record | None: ...
    async def renew_lease(
        self,
        conn: Connection,
        *,
        id: int,  # noqa: A002 - the column's name
        lease_s: float,
    ) -> int | None: ...
    async def finish_run(
        self,
        conn: Connection,
        *,
        id: int,  # noqa: A002 - the column's name
        outcome: str,
        may_run_again: bool,
        evidence: Mapping[str, object] | None,
        error: str | None,
        traceback: str | None,
    ) -> asyncpg.Record | None: ...
    def list_history(
        self, conn: Connection, *, job: str | None, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def fetch_last(
        self, conn: Connection, *, job: str, outcome: str | None
    ) -> asyncpg.Record | None: ...
    async def fetch_installed_at(self, conn: Connection) -> datetime: ...
    async def fetch_pause(self, conn: Connection) -> asyncpg.Record | None: ...
    async def set_pause(
        self, conn: Connection, *, value: Mapping[str, object], updated_by: str
    ) -> str: ...


_QUERIES: Final = load_queries("jobs", _Queries)


class JobRuns:
    """The runs of all jobs."""

    def __init__(
        self, db: Database, clock: Clock | None = None, *, lease_s: float = LEASE_S
    ) -> None:
        self._db = db
        self._clock = clock or Clock()
        self.lease_s = lease_s

    async def start(
        self,
        spec: JobSpec,
        period: Period,
        *,
        holder: str,
        started_by: StartedBy,
        again: bool = False,
    ) -> JobRun | Declined:
        """Take the lease of a job for a period, or say why not.

        Args:
            spec: the job.
            period: what the run is for.
            holder: machine and process, for people.
            started_by: ``schedule`` keeps to the pause and to what a failure forbids.
            again: run although the period has its success.
        """
        if started_by == "schedule":
            if (pause := await self.load_pause()).is_paused:
                return _paused(pause)
            if period.due_at < await self.load_installed_at():
                sentence = (
                    f"The job {spec.name} was last due before this installation began; its first "
                    "run is still to come."
                )
                return Declined("not_due", sentence)
        try:
            async with self._db.transaction() as connection:
                await _QUERIES.abandon_expired(connection, job=spec.name)
                earlier = _QUERIES.list_period(connection, job=spec.name, period=period.name)
                runs = [_build(row) async for row in earlier]
                declined = consider(spec, runs, started_by, again, self._clock.now())
                if declined is not None:
                    return declined
                row = await _QUERIES.start_run(
                    connection,
                    job=spec.name,
                    period=period.name,
                    due_at=period.due_at,
                    is_extra=again and any(run.outcome == "succeeded" for run in runs),
                    started_by=started_by,
                    holder=holder,
                    lease_s=self.lease_s,
                )
        except asyncpg.UniqueViolationError:
            row = None
        if row is not None:
            return _build(row)
        running = await self.find_running(spec.name)
        sentence = f"The job {spec.name} runs already" + (
            f": {running.holder}, since {running.started_at:%Y-%m-%d %H:%M:%S} UTC."
            if running
            else ", or has just ended."
        )
        return Declined("running", sentence, running)

    async def renew(self, run: JobRun) -> bool:
        """Say that a run goes on; False when its lease was taken for dead."""
        async with self._db.transaction() as connection:
            renewed = await _QUERIES.renew_lease(connection, id=run.id, lease_s=self.lease_s)
        return renewed is not None

    async def finish(
        self,
        run: JobRun,
        outcome: Outcome,
        *,
        may_run_again: bool = True,
        evidence: Mapping[str, object] | None = None,
        error: str | None = None,
        traceback: str | None = None,
    ) -> JobRun | None:
        """Close a run; None when its lease was taken for dead and the row is closed already."""
        async with self._db.transaction() as connection:
            row = await _QUERIES.finish_run(
                connection,
                id=run.id,
                outcome=outcome,
                may_run_again=may_run_again,
                evidence=evidence,
                error=error,
                traceback=traceback,
            )
        return _build(row) if row else None

    async def find_running(self, job: str) -> JobRun | None:
        """Return the run that goes on now."""
        async with self._db.connection() as connection:
            row = await _QUERIES.fetch_running(connection, job=job)
        return _build(row) if row else None

    async def find_last(self, job: str, outcome: Outcome | None = None) -> JobRun | None:
        """Return the last run of a job; with an outcome, the last that came to it."""
        async with self._db.connection() as connection:
            row = await _QUERIES.fetch_last(connection, job=job, outcome=outcome)
        return _build(row) if row else None

    async def list_period(self, job: str, period: str) -> tuple[JobRun, ...]:
        """Return the finished runs of a job for a period, the newest first."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_period(connection, job=job, period=period)
            return tuple([_build(row) async for row in rows])

    async def history(self, job: str | None = None, *, limit_rows: int = 20) -> tuple[JobRun, ...]:
        """Return runs, of one job or of all, the newest first."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_history(connection, job=job, limit_rows=limit_rows)
            return tuple([_build(row) async for row in rows])

    async def load_installed_at(self) -> datetime:
        """Return since when this installation is there: nothing is owed from before."""
        async with self._db.connection() as connection:
            return await _QUERIES.fetch_installed_at(connection)

    # The pause

    async def load_pause(self) -> Pause:
        """Return whether all jobs are paused."""
        async with self._db.connection() as connection:
            row = await _QUERIES.fetch_pause(connection)
        value = row["value"] if row else {}
        if row is None or not value.get("paused"):
            return Pause(is_paused=False)
        return Pause(True, row["updated_at"], row["updated_by"], value.get("reason"))

    async def set_pause(self, *, paused: bool, by: str, reason: str | None = None) -> Pause:
        """Pause all jobs, or resume them; a run that goes on is not stopped."""
        value = {"paused": paused, "reason": reason}
        async with self._db.transaction() as connection:
            await _QUERIES.set_pause(connection, value=value, updated_by=by)
        return await self.load_pause()


def pause_after(attempts: int) -> timedelta:
    """Return how long to wait after that many failures before the next attempt."""
    return timedelta(seconds=min(FIRST_PAUSE_S * 2 ** (attempts - 1), LONGEST_PAUSE_S))


def consider(
    spec: JobSpec, runs: Sequence[JobRun], started_by: StartedBy, again: bool, now: datetime
) -> Declined | None:
    """Say why a run is not to start, by the earlier ones of its period, the newest first. Pure."""
    success = next((run for run in runs if run.outcome == "succeeded"), None)
    if success is not None and not again:
        return Declined(
            "done",
            f"The job {spec.name} is done for {success.period}, since "
            f"{success.finished_at:%Y-%m-%d %H:%M:%S} UTC; `--again` runs it once more.",
            success,
        )
    if started_by == "person" or not runs:
        return None
    last, failures = runs[0], [run for run in runs if run.outcome != "abandoned"]
    if not last.may_run_again or len(failures) >= MAX_ATTEMPTS:
        return Declined(
            "needs_a_person",
            f"The job {spec.name} failed for {last.period} and does not run again by itself: "
            f"{last.error} When that is mended: han-solo jobs run {spec.name}",
            last,
        )
    if failures and last.outcome != "abandoned":
        assert last.finished_at is not None
        next_at = last.finished_at + pause_after(len(failures))
        if now < next_at:
            return Declined(
                "waiting",
                f"The job {spec.name} failed at {last.finished_at:%H:%M:%S} UTC and is tried again "
                f"from {next_at:%H:%M:%S} UTC on: {last.error}",
                last,
            )
    return None


def _paused(pause: Pause) -> Declined:
    why = f" ({pause.reason})" if pause.reason else ""
    return Declined(
        "paused",
        f"Jobs are paused since {pause.since:%Y-%m-%d %H:%M:%S} UTC by {pause.by}{why}; nothing "
        "was run. `han-solo jobs resume` ends the pause.",
    )


def _build(row: asyncpg.Record) -> JobRun:
    return JobRun(**dict(row))
