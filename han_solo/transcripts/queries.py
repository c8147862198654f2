"""The queries of transcripts, by name, parameter and result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final, Protocol

import asyncpg

from ..store.database import Connection
from ..store.queries import load_queries


class _Queries(Protocol):
    async def take_turn(self, conn: Connection) -> str: ...
    async def make_staging(self, conn: Connection) -> str: ...
    async def take_staging(self, conn: Connection, *, file_id: int, generation: int) -> int: ...
    async def take_sessions(self, conn: Connection) -> str: ...
    async def take_usage(self, conn: Connection) -> str: ...
    async def note_damage(
        self,
        conn: Connection,
        *,
        file_id: int,
        generation: int,
        file_offset: int,
        position: int,
        kind: str,
        raw: bytes,
        found_at: datetime,
    ) -> str: ...
    def list_files(self, conn: Connection, *, machine: str) -> AsyncIterator[asyncpg.Record]: ...
    async def open_file(
        self,
        conn: Connection,
        *,
        machine: str,
        path: str,
        device: int,
        inode: int,
        read_at: datetime,
    ) -> asyncpg.Record: ...
    async def advance_file(
        self,
        conn: Connection,
        *,
        id: int,  # noqa: A002 - the column's name
        read_from: int,
        read_to: int,
        tail: bytes,
        size: int,
        changed_ns: int,
        read_at: datetime,
    ) -> int | None: ...
    def search(
        self,
        conn: Connection,
        *,
        query: str,
        since: datetime | None,
        project: str | None,
        session_id: str | None,
        limit_rows: int,
    ) -> AsyncIterator[asyncpg.Record]: ...
    def read_session(
        self, conn: Connection, *, session_id: str, after_id: int, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def find_session(self, conn: Connection, *, session_id: str) -> asyncpg.Record | None: ...
    def list_sessions(
        self, conn: Connection, *, since: datetime | None, project: str | None, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    def count_kinds(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def count_damage(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    async def fetch_totals(self, conn: Connection) -> asyncpg.Record: ...


QUERIES: Final = load_queries("transcripts", _Queries)
