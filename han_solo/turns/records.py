"""The rows of turns in Postgres, as values; nothing here decides anything.

A row is opened on the sender's own session and bears that session's identity, so everybody can tell
a turn whose sender lives from one whose process died. Times are the database's: senders on several
machines pace themselves by one clock.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

import asyncpg

from ..store.database import Connection, Database
from ..store.queries import load_queries
from .model import Ending, TurnRecord
from .silence import tools_of


class _Queries(Protocol):
    async def join_queue(
        self, conn: Connection, *, turn_id: UUID, agent_id: str, sender: str
    ) -> asyncpg.Record | None: ...
    async def count_waiting(self, conn: Connection, *, agent_id: str) -> int: ...
    async def try_floor(self, conn: Connection, *, id: int, agent_id: str, key: int) -> bool: ...  # noqa: A002 - the column's name
    async def leave_queue(self, conn: Connection, *, turn_id: UUID) -> str: ...
    async def leave_floor(self, conn: Connection, *, key: int) -> bool: ...
    async def keep_alive(self, conn: Connection) -> int: ...
    async def fetch_holder(
        self, conn: Connection, *, agent_id: str, turn_id: UUID
    ) -> asyncpg.Record | None: ...
    async def fetch_rest_s(self, conn: Connection, *, agent_id: str) -> float | None: ...
    async def begin_turn(self, conn: Connection, *, turn_id: UUID) -> datetime: ...
    async def end_turn(
        self,
        conn: Connection,
        *,
        turn_id: UUID,
        outcome: str,
        cause: str | None,
        stop_reason: str | None,
        steps: int | None,
        tools: Sequence[str],
        run_id: str | None,
        reverted: Sequence[str] | None,
    ) -> datetime | None: ...
    async def drop_dead_waiters(self, conn: Connection, *, agent_id: str) -> str: ...
    def list_unsettled(
        self, conn: Connection, *, agent_id: str
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def find_turn(self, conn: Connection, *, turn_id: UUID) -> asyncpg.Record | None: ...
    def list_turns(
        self, conn: Connection, *, agent_id: str, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...


QUERIES: Final = load_queries("turns", _Queries)


async def end_turn(
    connection: Connection, turn_id: UUID, ending: Ending, reverted: Sequence[str] | None
) -> datetime | None:
    """Note what came of a turn; None when it was settled already."""
    turn = ending.turn
    return await QUERIES.end_turn(
        connection,
        turn_id=turn_id,
        outcome=ending.outcome,
        cause=ending.cause,
        stop_reason=turn.stop_reason if turn else None,
        steps=turn.steps if turn else None,
        tools=tools_of(turn),
        run_id=ending.run_id,
        reverted=reverted,
    )


async def load_unsettled(connection: Connection, agent_id: str) -> dict[UUID, float]:
    """Return the turns of which nobody living knows what came of them, with their age in s."""
    rows = QUERIES.list_unsettled(connection, agent_id=agent_id)
    return {row["turn_id"]: row["age_s"] async for row in rows}


async def load_turn(db: Database, turn_id: UUID) -> TurnRecord | None:
    async with db.connection() as connection:
        row = await QUERIES.find_turn(connection, turn_id=turn_id)
    return _build_record(row) if row else None


async def load_turns(db: Database, agent_id: str, limit_rows: int) -> tuple[TurnRecord, ...]:
    """Return the last turns of an agent, newest first."""
    async with db.connection() as connection:
        rows = QUERIES.list_turns(connection, agent_id=agent_id, limit_rows=limit_rows)
        return tuple([_build_record(row) async for row in rows])


def _build_record(row: asyncpg.Record) -> TurnRecord:
    fields = dict(row)
    reverted = fields["reverted"]
    fields["tools"] = tuple(fields["tools"])
    fields["reverted"] = None if reverted is None else tuple(reverted)
    return TurnRecord(**fields)
