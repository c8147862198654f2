"""The SQL statements about core blocks, typed; ``versions`` runs them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

import asyncpg

from ..store.database import Connection
from ..store.queries import load_queries


class Statements(Protocol):
    """The statements of ``blocks.sql``, with their parameters."""

    async def try_lock(self, conn: Connection, *, block_id: str) -> bool: ...
    async def limit_lock_wait(self, conn: Connection, *, timeout: str) -> str: ...
    async def wait_lock(self, conn: Connection, *, block_id: str) -> str: ...
    async def fetch_open_intent(
        self, conn: Connection, *, block_id: str
    ) -> asyncpg.Record | None: ...
    def list_heads(
        self, conn: Connection, *, block_ids: Sequence[str]
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def insert_intent(
        self,
        conn: Connection,
        *,
        intent_id: UUID,
        block_id: str,
        label: str,
        agent_id: str,
        base: int,
        value: str,
        sha256: str,
        author_kind: str,
        author: str,
        reason: str,
        origin: str,
        source: int | None,
    ) -> str: ...
    async def delete_intent(self, conn: Connection, *, intent_id: UUID) -> str: ...
    async def abandon_intent(self, conn: Connection, *, intent_id: UUID) -> str: ...
    async def delete_old_intents(
        self, conn: Connection, *, block_id: str, kept_s: float
    ) -> str: ...
    async def find_abandoned(
        self, conn: Connection, *, block_id: str, sha256: str
    ) -> asyncpg.Record | None: ...
    async def record_intent(
        self, conn: Connection, *, intent_id: UUID, at: datetime
    ) -> asyncpg.Record | None: ...
    async def insert_version(
        self,
        conn: Connection,
        *,
        block_id: str,
        label: str,
        agent_id: str,
        value: str,
        sha256: str,
        author_kind: str,
        author: str,
        reason: str,
        origin: str,
        source: int | None,
        at: datetime,
    ) -> asyncpg.Record: ...
    async def find_by_intent(self, conn: Connection, *, intent_id: UUID) -> int | None: ...
    async def find_by_text(self, conn: Connection, *, block_id: str, sha256: str) -> int | None: ...
    async def fetch_version(
        self, conn: Connection, *, block_id: str, number: int
    ) -> asyncpg.Record | None: ...
    def list_versions(
        self, conn: Connection, *, block_id: str, before: int, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    def list_texts(
        self, conn: Connection, *, block_id: str, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def find_block(self, conn: Connection, *, agent_id: str, label: str) -> str | None: ...
    async def find_former(
        self, conn: Connection, *, agent_id: str, label: str, block_ids: Sequence[str]
    ) -> asyncpg.Record | None: ...


STATEMENTS: Final = load_queries("blocks", Statements)
