"""The SQL of passages, typed. Each protocol states one file of ``store/queries``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import asyncpg

from ..store.database import Connection
from ..store.queries import load_queries

Texts = Sequence[str]


class _Passages(Protocol):
    async def prepare_write(self, conn: Connection) -> str: ...
    async def lock_thread(self, conn: Connection, *, thread: str) -> None: ...
    def insert_passages(
        self,
        conn: Connection,
        *,
        texts: Texts,
        titles: Texts,
        authors: Texts,
        origins: Texts,
        sources: Texts,
        threads: Sequence[str | None],
        scopes: Texts,
        tags: Texts,
        entities: Texts,
        tiers: Texts,
        importances: Sequence[float],
        happened_at: Sequence[datetime],
        import_keys: Sequence[str | None],
        principal: str,
        agent_id: str | None,
        at: datetime,
    ) -> AsyncIterator[asyncpg.Record]: ...
    def insert_chunks(
        self,
        conn: Connection,
        *,
        passage_ids: Sequence[int],
        note_ids: Sequence[int | None],
        numbers: Sequence[int],
        threads: Sequence[str | None],
        first_chars: Sequence[int],
        chars: Sequence[int],
        asks: Sequence[bool],
        tells_time: Sequence[bool],
        hashes: Sequence[bytes],
        authors: Texts,
        dates: Texts,
        titles: Texts,
        texts: Texts,
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def refresh_contexts(self, conn: Connection, *, chunk_ids: Sequence[int]) -> str: ...
    async def fetch_passage(
        self, conn: Connection, *, passage_id: int
    ) -> asyncpg.Record | None: ...
    def list_made(
        self,
        conn: Connection,
        *,
        since: datetime,
        until: datetime,
        max_chars: int,
        limit_rows: int,
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def promote_passage(self, conn: Connection, *, passage_id: int) -> int | None: ...
    async def archive_passage(
        self, conn: Connection, *, passage_id: int, principal: str, at: datetime
    ) -> int | None: ...
    async def restore_passage(self, conn: Connection, *, passage_id: int) -> int | None: ...
    async def lock_passage(self, conn: Connection, *, passage_id: int) -> asyncpg.Record | None: ...
    async def insert_note(
        self,
        conn: Connection,
        *,
        passage_id: int,
        text: str,
        principal: str,
        agent_id: str | None,
        at: datetime,
    ) -> asyncpg.Record: ...
    def list_notes(self, conn: Connection, *, passage_id: int) -> AsyncIterator[asyncpg.Record]: ...
    async def fetch_counting(self, conn: Connection) -> asyncpg.Record: ...
    async def try_counting_lock(self, conn: Connection) -> bool: ...
    async def count_words(self, conn: Connection) -> str: ...
    async def count_totals(self, conn: Connection, *, at: datetime) -> str: ...


class _Links(Protocol):
    def list_links(self, conn: Connection, *, passage_id: int) -> AsyncIterator[asyncpg.Record]: ...
    async def insert_link(
        self,
        conn: Connection,
        *,
        from_id: int,
        to_id: int,
        kind: str,
        note: str,
        principal: str,
        agent_id: str | None,
        at: datetime,
    ) -> int | None: ...
    def delete_links(
        self, conn: Connection, *, from_id: int, to_id: int, kind: str | None
    ) -> AsyncIterator[asyncpg.Record]: ...
    def find_missing(
        self, conn: Connection, *, passage_ids: Sequence[int]
    ) -> AsyncIterator[asyncpg.Record]: ...
    def expand_links(
        self,
        conn: Connection,
        *,
        search_id: int,
        passage_ids: Sequence[int],
        include_archived: bool,
        each_rows: int,
        limit_rows: int,
    ) -> AsyncIterator[asyncpg.Record]: ...


class _Access(Protocol):
    async def fetch_access(self, conn: Connection, *, passage_id: int) -> asyncpg.Record: ...
    async def insert_read(
        self,
        conn: Connection,
        *,
        passage_id: int,
        principal: str,
        agent_id: str | None,
        at: datetime,
    ) -> str: ...
    async def fetch_search(self, conn: Connection, *, search_id: int) -> asyncpg.Record | None: ...
    async def trim_search(
        self,
        conn: Connection,
        *,
        search_id: int,
        passage_ids: Sequence[int],
        linked_ids: Sequence[int],
    ) -> str: ...
    async def put_verdicts(
        self,
        conn: Connection,
        *,
        search_id: int,
        used_ids: Sequence[int],
        note: str,
        principal: str,
        agent_id: str | None,
        at: datetime,
    ) -> str: ...


class _Vectors(Protocol):
    def list_embedders(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    async def fetch_active(self, conn: Connection) -> asyncpg.Record | None: ...
    async def insert_embedder(
        self,
        conn: Connection,
        *,
        provider: str,
        model: str,
        width: int,
        state: str,
        at: datetime,
    ) -> asyncpg.Record | None: ...
    async def find_embedder(
        self, conn: Connection, *, provider: str, model: str, width: int
    ) -> asyncpg.Record | None: ...
    async def set_filling(self, conn: Connection, *, embedder_id: int) -> str: ...
    async def activate_embedder(
        self, conn: Connection, *, embedder_id: int, at: datetime
    ) -> str: ...
    async def retire_active(self, conn: Connection, *, except_id: int) -> str: ...
    async def insert_vectors(
        self,
        conn: Connection,
        *,
        embedder_id: int,
        chunk_ids: Sequence[int],
        hashes: Sequence[bytes],
        vectors: Sequence[str | None],
    ) -> str: ...
    async def refresh_vector_contexts(
        self, conn: Connection, *, embedder_id: int, chunk_ids: Sequence[int]
    ) -> str: ...
    async def try_switch_lock(self, conn: Connection) -> bool: ...
    async def has_index(self, conn: Connection, *, embedder_id: int) -> bool: ...
    async def is_busy(self, conn: Connection) -> bool: ...
    async def join_vectors(self, conn: Connection, *, embedder_id: int, after_id: int) -> str: ...
    async def count_stale(self, conn: Connection, *, embedder_id: int) -> asyncpg.Record: ...
    def find_widths(
        self, conn: Connection, *, embedder_id: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    def list_stale(
        self, conn: Connection, *, embedder_id: int, width: int, after_id: int, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...


class Indexes(Protocol):
    """The index of one model's vectors."""

    async def count_indexed(self, conn: Connection) -> int: ...
    async def prepare_build(self, conn: Connection, *, memory: str) -> str: ...
    async def build_alone(self, conn: Connection) -> str: ...
    async def make_index(self, conn: Connection) -> str: ...
    async def make_index_beside(self, conn: Connection) -> str: ...
    async def drop_index(self, conn: Connection) -> str: ...


class Searching(Protocol):
    """The search by one model's vectors."""

    async def prepare_search(self, conn: Connection) -> asyncpg.Record: ...
    def search_passages(
        self,
        conn: Connection,
        *,
        queries: Texts,
        vectors: Sequence[str | None],
        wants_time: Sequence[bool],
        weights: Sequence[float],
        least_near: float,
        limit_rows: int,
        include_archived: bool,
        is_filtered: bool,
        scopes: Texts | None,
        tags: Texts | None,
        entities: Texts | None,
        authors: Texts | None,
        origins: Texts | None,
        tier: str | None,
        thread: str | None,
        happened_from: datetime | None,
        happened_to: datetime | None,
        principal: str,
        agent_id: str | None,
        filters: Mapping[str, Any],
        mode: str,
        reason: str,
        at: datetime,
    ) -> AsyncIterator[asyncpg.Record]: ...


PASSAGES: Final = load_queries("passages", _Passages)
LINKS: Final = load_queries("links", _Links)
ACCESS: Final = load_queries("access", _Access)
VECTORS: Final = load_queries("vectors", _Vectors)


def load_indexes(embedder_id: int, width: int) -> Indexes:
    """Return the statements about the index of one model's vectors."""
    numbers = {"embedder": embedder_id, "width": width}
    return load_queries("vector_indexes", Indexes, numbers=numbers)


def load_searching(embedder_id: int, width: int) -> Searching:
    """Return the search by one model's vectors: its index is found by literals only."""
    return load_queries("search", Searching, numbers={"embedder": embedder_id, "width": width})
