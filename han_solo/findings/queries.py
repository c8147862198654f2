"""The named queries of ``findings.sql``, typed; ``service`` and ``remedies`` call them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

import asyncpg

from ..store.database import Connection
from ..store.queries import load_queries


class Queries(Protocol):
    """``store/queries/findings.sql``."""

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
    def resolve_unwatched(
        self, conn: Connection, *, agent_id: str, watched: Sequence[str], now: datetime
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def count_runs(self, conn: Connection, *, guard: str, agent_id: str) -> int | None: ...
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
        runs: int | None,
    ) -> int | None: ...
    def list_runs(self, conn: Connection, *, agent_id: str) -> AsyncIterator[asyncpg.Record]: ...
    def list_open(
        self, conn: Connection, *, agent_id: str, guard: str | None
    ) -> AsyncIterator[asyncpg.Record]: ...
    def list_history(
        self, conn: Connection, *, agent_id: str, guard: str | None, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    def claim_alerts(
        self,
        conn: Connection,
        *,
        agent_id: str,
        now: datetime,
        least_pause: timedelta,
        longest_pause: timedelta,
        not_before: datetime,
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def note_alerted(
        self,
        conn: Connection,
        *,
        id: int,  # noqa: A002 - the column's name
        severity: str,
        now: datetime,
    ) -> str: ...
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
    def list_last_tries(
        self, conn: Connection, *, guard: str, agent_id: str, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    def list_remedies_of(
        self, conn: Connection, *, finding_ids: Sequence[int]
    ) -> AsyncIterator[asyncpg.Record]: ...


QUERIES: Final = load_queries("findings", Queries)
