"""Importing many passages: rows and words first, then what is around each, then the vectors.

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
from .passage_model import Draft
from .passage_writing import index_text

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
    async def last_chunk(self, conn: Connection) -> int: ...
    async def settle_words(self, conn: Connection) -> int: ...
    async def join_contexts(self, conn: Connection, *, after_id: int) -> str: ...


QUERIES: Final = load_queries("passage_import", _Queries)


async def write_rows(
    db: Database, principal: Principal, drafts: Sequence[Draft], at: datetime, tell: Tell
) -> list[int]:
    """Write passages and chunks; return the ids of those that are new, in the order given."""
    ids: dict[int, int] = {}

    async def write(share: Sequence[tuple[int, Draft]]) -> None:
        for first in range(0, len(share), BATCH):
            batch = share[first : first + BATCH]
            async with db.transaction() as connection:
                await QUERIES.prepare_import(connection)
                rows = _import(connection, principal, [draft for _, draft in batch], at)
                found = [(batch[row["number"]][0], row["id"]) async for row in rows]
            ids.update(found)
            tell("written", len(batch))
            await asyncio.sleep(0)  # others of this process get their turn

    async with asyncio.TaskGroup() as group:
        for share in _share_out(drafts):
            group.create_task(write(share))
    return [ids[place] for place in sorted(ids)]


def _share_out(drafts: Sequence[Draft]) -> list[list[tuple[int, Draft]]]:
    """Share them out so that those of one thread are written by one worker, in order."""
    workers = WORKERS if len(drafts) > BATCH else 1
    shares: list[list[tuple[int, Draft]]] = [[] for _ in range(workers)]
    worker_of: dict[str, int] = {}
    chosen = 0
    for place, draft in enumerate(drafts):
        if draft.thread is not None:
            chosen = worker_of.setdefault(draft.thread, _shortest(shares))
        else:
            chosen = _shortest(shares)
        shares[chosen].append((place, draft))
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
