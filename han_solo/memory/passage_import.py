"""Importing many passages: rows and words first, then what is around each, then the vectors.

What comes with a passage (who wrote it, its notes, that it was put away) is written in the
transaction that writes the passage, so that no import leaves half of one.

Each batch is found by its words as soon as it is written. Contexts, vectors and the index of
vectors are made for all of it at once, which is many times as fast as one by one. Where an import
is cut short, ``embed fill`` makes the vectors that are missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Final, Protocol

import asyncpg

from ..principals import Principal
from ..store.database import Connection, Database
from ..store.queries import load_queries
from . import passage_text
from .passage_model import Draft, Incoming
from .passage_writing import Chunk, index_text, thread_key, write_chunks

BATCH: Final = 2_000
WORKERS: Final = 2
"""One prepares while Postgres takes in the other's; more would wait for this process anyway."""

Tell = Callable[[str, int], None]
"""Is told what was done, and how many more of it: ``written``, ``embedded``."""


class _Queries(Protocol):
    async def prepare_import(self, conn: Connection) -> str: ...
    def import_passages(
        self,
        conn: Connection,
        *,
        numbers: Sequence[int],
        texts: Sequence[str],
        titles: Sequence[str],
        authors: Sequence[str],
        origins: Sequence[str],
        sources: Sequence[str],
        threads: Sequence[str | None],
        scopes: Sequence[str],
        tags: Sequence[str],
        entities: Sequence[str],
        tiers: Sequence[str],
        importances: Sequence[float],
        happened_at: Sequence[datetime],
        import_keys: Sequence[str | None],
        chunk_numbers: Sequence[int],
        orders: Sequence[int],
        first_chars: Sequence[int],
        chars: Sequence[int],
        asks: Sequence[bool],
        tells_time: Sequence[bool],
        hashes: Sequence[bytes],
        dates: Sequence[str],
        principal: str,
        agent_id: str | None,
        at: datetime,
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def settle_imported(
        self,
        conn: Connection,
        *,
        ids: Sequence[int],
        principals: Sequence[str],
        agent_ids: Sequence[str | None],
        created_at: Sequence[datetime],
    ) -> str: ...
    def insert_notes(
        self,
        conn: Connection,
        *,
        passage_ids: Sequence[int],
        texts: Sequence[str],
        principals: Sequence[str],
        agent_ids: Sequence[str | None],
        created_at: Sequence[datetime],
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def archive_imported(
        self,
        conn: Connection,
        *,
        ids: Sequence[int],
        principals: Sequence[str],
        archived_at: Sequence[datetime],
    ) -> str: ...
    async def hold_import(self, conn: Connection) -> None: ...
    async def last_chunk(self, conn: Connection) -> int: ...
    async def settle_words(self, conn: Connection) -> int: ...
    async def join_contexts(self, conn: Connection, *, after_id: int) -> str: ...


QUERIES: Final = load_queries("passage_import", _Queries)


async def write_rows(
    db: Database, principal: Principal, items: Sequence[Incoming], at: datetime, tell: Tell
) -> list[int]:
    """Write passages and chunks; return the ids of those that are new, in the order given."""
    ids: dict[int, int] = {}

    async def write(share: Sequence[tuple[int, Incoming]]) -> None:
        for first in range(0, len(share), BATCH):
            batch = share[first : first + BATCH]
            async with db.transaction() as connection:
                await QUERIES.prepare_import(connection)
                rows = _import(connection, principal, [item.draft for _, item in batch], at)
                new = [(row["number"], row["id"]) async for row in rows]
                await _write_rest(connection, [(id_, batch[number][1]) for number, id_ in new])
            found = [(batch[number][0], id_) for number, id_ in new]
            ids.update(found)
            tell("written", len(batch))
            await asyncio.sleep(0)  # others of this process get their turn

    async with asyncio.TaskGroup() as group:
        for share in _share_out(items):
            group.create_task(write(share))
    return [ids[place] for place in sorted(ids)]


async def _write_rest(connection: Connection, new: Sequence[tuple[int, Incoming]]) -> None:
    """Write what came with passages that are new; those that were there keep what they have."""
    written = [(id_, item.provenance) for id_, item in new if item.provenance]
    if written:
        await QUERIES.settle_imported(
            connection,
            ids=[id_ for id_, _ in written],
            principals=[who.principal for _, who in written],
            agent_ids=[who.agent_id for _, who in written],
            created_at=[who.created_at for _, who in written],
        )
    if any(item.notes for _, item in new):
        await _write_notes(connection, [(id_, item) for id_, item in new if item.notes])
    archived = [(id_, item.archived) for id_, item in new if item.archived]
    if archived:
        await QUERIES.archive_imported(
            connection,
            ids=[id_ for id_, _ in archived],
            principals=[who.principal for _, who in archived],
            archived_at=[who.created_at for _, who in archived],
        )


async def _write_notes(connection: Connection, new: Sequence[tuple[int, Incoming]]) -> None:
    notes = [(id_, item.draft, note) for id_, item in new for note in item.notes]
    rows = QUERIES.insert_notes(
        connection,
        passage_ids=[id_ for id_, _, _ in notes],
        texts=[note.text for _, _, note in notes],
        principals=[note.provenance.principal for _, _, note in notes],
        agent_ids=[note.provenance.agent_id for _, _, note in notes],
        created_at=[note.provenance.created_at for _, _, note in notes],
    )
    note_ids = [row["id"] async for row in rows]
    chunks = [
        Chunk(
            passage_id=id_,
            note_id=note_id,
            number=number,
            thread=thread_key(None, id_),
            author=draft.author,
            title=draft.title,
            indexed=indexed,
        )
        for (id_, draft, note), note_id in zip(notes, note_ids, strict=True)
        for number, indexed in enumerate(
            index_text(
                note.text,
                author=draft.author,
                title=draft.title,
                happened_at=note.provenance.created_at,
            ),
            start=1,
        )
    ]
    await write_chunks(connection, chunks)


def _share_out(items: Sequence[Incoming]) -> list[list[tuple[int, Incoming]]]:
    """Share them out so that those of one thread are written by one worker, in order."""
    workers = WORKERS if len(items) > BATCH else 1
    shares: list[list[tuple[int, Incoming]]] = [[] for _ in range(workers)]
    worker_of: dict[str, int] = {}
    chosen = 0
    for place, item in enumerate(items):
        if item.draft.thread is not None:
            chosen = worker_of.setdefault(item.draft.thread, _shortest(shares))
        else:
            chosen = _shortest(shares)
        shares[chosen].append((place, item))
    return [share for share in shares if share]


def _shortest(shares: Sequence[Sequence[object]]) -> int:
    return min(range(len(shares)), key=lambda number: len(shares[number]))


def _import(
    connection: Connection, principal: Principal, drafts: Sequence[Draft], at: datetime
) -> AsyncIterator[asyncpg.Record]:
    times = [draft.happened_at or at for draft in drafts]
    pieces = [
        (order, number, indexed)
        for order, draft in enumerate(drafts)
        for number, indexed in enumerate(
            index_text(
                draft.text, author=draft.author, title=draft.title, happened_at=times[order]
            ),
            start=1,
        )
    ]
    return QUERIES.import_passages(
        connection,
        numbers=range(len(drafts)),
        texts=[draft.text for draft in drafts],
        titles=[draft.title for draft in drafts],
        authors=[draft.author for draft in drafts],
        origins=[draft.origin for draft in drafts],
        sources=[draft.source for draft in drafts],
        threads=[draft.thread for draft in drafts],
        scopes=[draft.scope for draft in drafts],
        tags=[_write_array(draft.tags) for draft in drafts],
        entities=[
            _write_array(passage_text.find_entities(f"{draft.title}\n{draft.text}"))
            for draft in drafts
        ],
        tiers=[draft.tier for draft in drafts],
        importances=[draft.importance for draft in drafts],
        happened_at=times,
        import_keys=[draft.import_key for draft in drafts],
        chunk_numbers=[number for _, number, _ in pieces],
        orders=[order for order, _, _ in pieces],
        first_chars=[indexed.piece.first_char for _, _, indexed in pieces],
        chars=[len(indexed.piece.text) for _, _, indexed in pieces],
        asks=[indexed.asks for _, _, indexed in pieces],
        tells_time=[indexed.tells_time for _, _, indexed in pieces],
        hashes=[indexed.sha256 for _, _, indexed in pieces],
        dates=[indexed.date for _, _, indexed in pieces],
        principal=principal.name,
        agent_id=principal.agent_id,
        at=at,
    )


def _write_array(values: Sequence[str]) -> str:
    """Write an array as Postgres reads it: arrays of arrays would all have to be of one length."""
    quoted = ('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values)
    return "{" + ",".join(quoted) + "}"
