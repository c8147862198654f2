"""The SQL of bringing passages from one memory to another, typed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final, Protocol

import asyncpg

from ..store.database import Connection
from ..store.queries import load_queries


class _Transfer(Protocol):
    async def count_passages(self, conn: Connection, *, scopes: Sequence[str] | None) -> int: ...
    def list_passages(
        self, conn: Connection, *, after_id: int, scopes: Sequence[str] | None, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    def list_notes_on(
        self, conn: Connection, *, passage_ids: Sequence[int]
    ) -> AsyncIterator[asyncpg.Record]: ...
    def list_links_from(
        self, conn: Connection, *, passage_ids: Sequence[int]
    ) -> AsyncIterator[asyncpg.Record]: ...
    def find_keys(
        self, conn: Connection, *, keys: Sequence[str], ids: Sequence[int | None]
    ) -> AsyncIterator[asyncpg.Record]: ...
    def insert_links(
        self,
        conn: Connection,
        *,
        from_ids: Sequence[int],
        to_ids: Sequence[int],
        kinds: Sequence[str],
        notes: Sequence[str],
        principals: Sequence[str],
        agent_ids: Sequence[str | None],
        created_at: Sequence[datetime],
    ) -> AsyncIterator[asyncpg.Record]: ...


TRANSFER: Final = load_queries("transfer", _Transfer)
