"""The journal of syncs in Postgres, and the lock that lets one run at a time.

A sync that has something to do opens a run with its plan, notes each step once it was read back,
and closes the run. One sync at a time is ensured by a session's advisory lock on a direct
connection: it ends with the process, so nothing has to be cleaned up after a crash.
"""

from __future__ import annotations

import hashlib
import random
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol

import asyncpg

from ..clock import Clock
from ..errors import ReconcileBusy
from ..store.database import Connection, Database
from ..store.queries import load_queries

LOCK_WAIT_S: Final = 120.0
"""A first sync of a hundred tools takes some 15 s; several replicas that start may queue."""

POLL_S: Final = (0.1, 0.3)
"""Between these, at random; a waiter that blocks in the database would hold up index builds."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What became of one step, with the ids it dealt with and what was there before."""

    position: int
    kind: str
    target: str
    outcome: Literal["done", "failed"]
    detail: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of the journal."""

    run_id: uuid.UUID
    agent_name: str
    agent_id: str
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None
    plan: Mapping[str, object]
    error: str | None


class _Queries(Protocol):
    async def try_lock(self, conn: Connection, *, key: int) -> bool: ...
    async def unlock(self, conn: Connection, *, key: int) -> bool: ...
    async def abandon_runs(
        self, conn: Connection, *, agent_name: str, finished_at: datetime
    ) -> str: ...
    async def insert_run(
        self,
        conn: Connection,
        *,
        run_id: uuid.UUID,
        agent_name: str,
        agent_id: str,
        started_at: datetime,
        plan: Mapping[str, object],
    ) -> str: ...
    async def finish_run(
        self,
        conn: Connection,
        *,
        run_id: uuid.UUID,
        finished_at: datetime,
        outcome: str,
        error: str | None,
    ) -> str: ...
    async def insert_step(
        self,
        conn: Connection,
        *,
        run_id: uuid.UUID,
        position: int,
        kind: str,
        target: str,
        outcome: str,
        detail: Mapping[str, object],
        at: datetime,
    ) -> str: ...
    def list_runs(
        self, conn: Connection, *, agent_name: str, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    def list_steps(
        self, conn: Connection, *, run_id: uuid.UUID
    ) -> AsyncIterator[asyncpg.Record]: ...


_QUERIES: Final = load_queries("reconcile", _Queries)


@asynccontextmanager
async def hold_lock(
    db: Database, agent_name: str, *, clock: Clock, wait_s: float = LOCK_WAIT_S
) -> AsyncIterator[None]:
    """Hold the one reconcile lock of an agent.

    Raises:
        ReconcileBusy: someone else has had it for longer than ``wait_s``.
    """
    digest = hashlib.sha256(f"han-solo reconcile {agent_name}".encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    deadline = time.monotonic() + wait_s
    async with db.direct(application_name="han-solo reconcile") as connection:
        while not await _QUERIES.try_lock(connection, key=key):
            if time.monotonic() >= deadline:
                raise ReconcileBusy(
                    f"Another process has been syncing {agent_name!r} for more than {wait_s:g} s.",
                    hint="Wait for it, or end it if it hangs; running again finishes what is left.",
                )
            await clock.sleep(random.uniform(*POLL_S))  # noqa: S311 - jitter, not a secret
        try:
            yield
        finally:
            if not connection.is_closed():  # a lost connection has given the lock back
                await _QUERIES.unlock(connection, key=key)


class Journal:
    """The journal of one agent's syncs; used under ``hold_lock``."""

    def __init__(self, db: Database, agent_name: str, clock: Clock) -> None:
        self._db = db
        self._name = agent_name
        self._clock = clock

    async def open_run(self, agent_id: str, plan: Mapping[str, object]) -> uuid.UUID:
        """Open a run, and close those that a dead process left open."""
        run_id = uuid.uuid4()
        now = self._clock.now()
        async with self._db.transaction() as connection:
            await _QUERIES.abandon_runs(connection, agent_name=self._name, finished_at=now)
            await _QUERIES.insert_run(
                connection,
                run_id=run_id,
                agent_name=self._name,
                agent_id=agent_id,
                started_at=now,
                plan=plan,
            )
        return run_id

    async def note_steps(self, run_id: uuid.UUID, records: Sequence[StepRecord]) -> None:
        async with self._db.transaction() as connection:
            for record in records:
                await _QUERIES.insert_step(
                    connection,
                    run_id=run_id,
                    position=record.position,
                    kind=record.kind,
                    target=record.target,
                    outcome=record.outcome,
                    detail=record.detail,
                    at=self._clock.now(),
                )

    async def close_run(self, run_id: uuid.UUID, error: str | None) -> None:
        async with self._db.transaction() as connection:
            await _QUERIES.finish_run(
                connection,
                run_id=run_id,
                finished_at=self._clock.now(),
                outcome="failed" if error is not None else "done",
                error=error,
            )

    async def load_runs(self, limit_rows: int = 20) -> tuple[RunRow, ...]:
        """Return the last runs, newest first."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_runs(connection, agent_name=self._name, limit_rows=limit_rows)
            return tuple([RunRow(**dict(row)) async for row in rows])

    async def load_steps(self, run_id: uuid.UUID) -> tuple[StepRecord, ...]:
        """Return what became of a run's steps, in the plan's order."""
        async with self._db.connection() as connection:
            rows = [dict(row) async for row in _QUERIES.list_steps(connection, run_id=run_id)]
        return tuple(
            StepRecord(**{key: value for key, value in row.items() if key != "at"}) for row in rows
        )
