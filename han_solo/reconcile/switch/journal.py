"""The journal of switches in Postgres: each step is noted before it is taken, and after.

An open switch under the agent's reconcile lock is one whose process died: whoever holds the lock
settles it. Who calls: ``run``, ``settle``, the reconciler (to tell a switch that was meant from one
that was not), and the bridge (to know canaries).
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, Protocol
from uuid import UUID

import asyncpg

from ...clock import Clock
from ...store.database import Connection, Database
from ...store.queries import load_queries
from .plan import SwitchPlan

StepName = Literal["config", "tools", "canary", "config_back", "tools_back"]
SwitchOutcome = Literal["done", "returned", "undone", "abandoned"]


@dataclass(frozen=True, slots=True)
class SwitchRow:
    """A switch in the journal; ``outcome`` is None while it is under way, or its process died."""

    switch_id: UUID
    agent_id: str
    is_back: bool
    from_handle: str
    to_handle: str
    spec_handle: str
    old_config: Mapping[str, object] = field(repr=False)
    new_config: Mapping[str, object] = field(repr=False)
    tool_ids: Sequence[str] = field(repr=False)
    started_by: str
    started_at: datetime
    finished_at: datetime | None
    outcome: SwitchOutcome | None
    error: str | None

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "switch_id": str(self.switch_id),
            "agent_id": self.agent_id,
            "is_back": self.is_back,
            "from": self.from_handle,
            "to": self.to_handle,
            "started_by": self.started_by,
            "started_at": self.started_at.isoformat(),
            "finished_at": self.finished_at.isoformat() if self.finished_at else None,
            "outcome": self.outcome,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step in the journal; ``outcome`` is None when it was intended and never heard of again."""

    position: int
    step: StepName
    intended_at: datetime
    finished_at: datetime | None
    outcome: Literal["done", "failed"] | None
    detail: Mapping[str, object]


class _Queries(Protocol):
    async def insert_switch(
        self,
        conn: Connection,
        *,
        switch_id: UUID,
        agent_name: str,
        agent_id: str,
        is_back: bool,
        from_handle: str,
        to_handle: str,
        spec_handle: str,
        old_config: Mapping[str, object],
        new_config: Mapping[str, object],
        tool_ids: Sequence[str],
        started_by: str,
        started_at: datetime,
    ) -> str: ...
    async def finish_switch(
        self,
        conn: Connection,
        *,
        switch_id: UUID,
        outcome: str,
        error: str | None,
        finished_at: datetime,
    ) -> str: ...
    async def intend_step(
        self, conn: Connection, *, switch_id: UUID, step: str, intended_at: datetime
    ) -> int: ...
    async def finish_step(
        self,
        conn: Connection,
        *,
        switch_id: UUID,
        position: int,
        outcome: str,
        detail: Mapping[str, object],
        finished_at: datetime,
    ) -> str: ...
    def list_steps(self, conn: Connection, *, switch_id: UUID) -> AsyncIterator[asyncpg.Record]: ...
    async def find_open(self, conn: Connection, *, agent_name: str) -> asyncpg.Record | None: ...
    async def find_last(
        self, conn: Connection, *, agent_id: str, with_open: bool
    ) -> asyncpg.Record | None: ...
    def list_switches(
        self, conn: Connection, *, agent_name: str, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def insert_canary(
        self,
        conn: Connection,
        *,
        agent_id: str,
        owner_id: str,
        switch_id: UUID,
        made_at: datetime,
    ) -> str: ...
    async def end_canary(self, conn: Connection, *, agent_id: str, ended_at: datetime) -> str: ...
    def list_left_canaries(
        self, conn: Connection, *, agent_name: str
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def is_canary(self, conn: Connection, *, agent_id: str) -> bool: ...


_QUERIES: Final = load_queries("switches", _Queries)


class SwitchJournal:
    """The switches of one agent, by the name of its spec."""

    def __init__(self, db: Database, agent_name: str, clock: Clock) -> None:
        self._db = db
        self._name = agent_name
        self._clock = clock

    async def open(self, plan: SwitchPlan) -> UUID:
        """Note what is to be done, before any of it; under the lock."""
        switch_id = uuid.uuid4()
        async with self._db.transaction() as connection:
            await _QUERIES.insert_switch(
                connection,
                switch_id=switch_id,
                agent_name=self._name,
                agent_id=plan.agent_id,
                is_back=plan.is_back,
                from_handle=plan.from_handle,
                to_handle=plan.to_handle,
                spec_handle=plan.spec_handle,
                old_config=plan.old_config,
                new_config=plan.new_config,
                tool_ids=list(plan.tools),
                started_by=f"process {os.getpid()} on {socket.gethostname()}",
                started_at=self._clock.now(),
            )
        return switch_id

    async def close(
        self, switch_id: UUID, outcome: SwitchOutcome, error: str | None = None
    ) -> None:
        """Note what came of it; there is an error with every outcome but ``done``."""
        async with self._db.transaction() as connection:
            await _QUERIES.finish_switch(
                connection,
                switch_id=switch_id,
                outcome=outcome,
                error=error,
                finished_at=self._clock.now(),
            )

    async def intend(self, switch_id: UUID, step: StepName) -> int:
        """Note that a step is about to be taken, and return its place."""
        async with self._db.transaction() as connection:
            return await _QUERIES.intend_step(
                connection, switch_id=switch_id, step=step, intended_at=self._clock.now()
            )

    async def finish(
        self,
        switch_id: UUID,
        position: int,
        detail: Mapping[str, object],
        *,
        failed: bool = False,
    ) -> None:
        """Note what came of a step, after it was read back."""
        async with self._db.transaction() as connection:
            await _QUERIES.finish_step(
                connection,
                switch_id=switch_id,
                position=position,
                outcome="failed" if failed else "done",
                detail=detail,
                finished_at=self._clock.now(),
            )

    async def load_steps(self, switch_id: UUID) -> tuple[StepRow, ...]:
        async with self._db.connection() as connection:
            rows = _QUERIES.list_steps(connection, switch_id=switch_id)
            return tuple([StepRow(**dict(row)) async for row in rows])

    async def load_open(self) -> SwitchRow | None:
        """Return the switch that is under way, or whose process died."""
        async with self._db.connection() as connection:
            row = await _QUERIES.find_open(connection, agent_name=self._name)
        return SwitchRow(**dict(row)) if row else None

    async def load(self, limit_rows: int = 20) -> tuple[SwitchRow, ...]:
        """Return the last switches, newest first."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_switches(connection, agent_name=self._name, limit_rows=limit_rows)
            return tuple([SwitchRow(**dict(row)) async for row in rows])

    async def note_canary(self, canary_id: str, owner_id: str, switch_id: UUID) -> None:
        """Note a canary before it is sent anything: from now on the bridge refuses its writes."""
        async with self._db.transaction() as connection:
            await _QUERIES.insert_canary(
                connection,
                agent_id=canary_id,
                owner_id=owner_id,
                switch_id=switch_id,
                made_at=self._clock.now(),
            )

    async def note_ended(self, canary_id: str) -> None:
        async with self._db.transaction() as connection:
            await _QUERIES.end_canary(connection, agent_id=canary_id, ended_at=self._clock.now())

    async def load_left_canaries(self) -> Mapping[str, str]:
        """Return the canaries that are still to be ended, each with the agent it was for."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_left_canaries(connection, agent_name=self._name)
            return {row["agent_id"]: row["owner_id"] async for row in rows}


async def load_last(db: Database, agent_id: str, *, with_open: bool = False) -> SwitchRow | None:
    """Return the last switch of an agent that went through; ``with_open``: or is under way."""
    async with db.connection() as connection:
        row = await _QUERIES.find_last(connection, agent_id=agent_id, with_open=with_open)
    return SwitchRow(**dict(row)) if row else None


async def is_canary(db: Database, agent_id: str) -> bool:
    """Say whether an agent is a canary, or was one."""
    async with db.connection() as connection:
        return await _QUERIES.is_canary(connection, agent_id=agent_id)
