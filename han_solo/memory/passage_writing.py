"""Writing passages: rows, chunks, words in context and vectors, in one transaction or not at all.

A chunk has neighbours where its passage is part of a thread, or is long, or has notes. Who writes
into a thread changes the context of what was last in it, so writers of one thread take turns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import asyncpg

from ..errors import WriteNotVerified
from ..principals import Principal
from ..store.database import Connection, Database
from . import passage_text
from .passage_model import Draft, Passage
from .passage_text import Indexed
from .statements import PASSAGES
from .threads import lock_threads
from .vectors import Made, Vectors


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk that is to be written; ``passage_id`` and ``thread`` may follow from its passage."""

    passage_id: int
    note_id: int | None
    number: int
    thread: str | None
    author: str
    title: str
    indexed: Indexed


def index_text(text: str, *, author: str, title: str, happened_at: datetime) -> tuple[Indexed, ...]:
    """Split a text and index its pieces."""
    return tuple(
        passage_text.build_indexed(piece, author=author, title=title, happened_at=happened_at)
        for piece in passage_text.split_text(text)
    )


def thread_key(thread: str | None, passage_id: int | None = None) -> str | None:
    """Return where the neighbours of a chunk are looked for: a thread, or else a passage."""
    if thread is not None:
        return f"thread {thread}"
    return None if passage_id is None else f"passage {passage_id}"


async def write_drafts(
    db: Database, vectors: Vectors, principal: Principal, drafts: Sequence[Draft], at: datetime
) -> tuple[list[Passage], int, Made]:
    """Write drafts, but for those imported before.

    Returns:
        The new passages, how many chunks they have, and what came of their vectors.

    Raises:
        WriteNotVerified: the database gave back another text; nothing was written.
    """
    pieces = [
        index_text(
            draft.text,
            author=draft.author,
            title=draft.title,
            happened_at=draft.happened_at or at,
        )
        for draft in drafts
    ]
    made = await vectors.make([piece.embedded for row in pieces for piece in row])
    async with db.transaction() as connection:
        await lock_threads(
            connection, [thread_key(draft.thread) for draft in drafts if draft.thread]
        )
        passages = await _insert_passages(connection, principal, drafts, at)
        chunks, kept = _pair(drafts, passages, pieces, made)
        ids = await write_chunks(connection, chunks)
        await vectors.keep(
            connection,
            kept,
            ids,
            [chunk.indexed.sha256 for chunk in chunks],
            in_thread=any(chunk.thread for chunk in chunks),
        )
    return passages, len(chunks), made


async def write_chunks(connection: Connection, chunks: Sequence[Chunk]) -> list[int]:
    """Write chunks and the words of those around them; return their ids in order."""
    await PASSAGES.prepare_write(connection)
    rows = PASSAGES.insert_chunks(
        connection,
        passage_ids=[chunk.passage_id for chunk in chunks],
        note_ids=[chunk.note_id for chunk in chunks],
        numbers=[chunk.number for chunk in chunks],
        threads=[chunk.thread for chunk in chunks],
        first_chars=[chunk.indexed.piece.first_char for chunk in chunks],
        chars=[len(chunk.indexed.piece.text) for chunk in chunks],
        asks=[chunk.indexed.asks for chunk in chunks],
        tells_time=[chunk.indexed.tells_time for chunk in chunks],
        hashes=[chunk.indexed.sha256 for chunk in chunks],
        authors=[chunk.author for chunk in chunks],
        dates=[chunk.indexed.date for chunk in chunks],
        titles=[chunk.title for chunk in chunks],
        texts=[chunk.indexed.piece.text for chunk in chunks],
    )
    ids = [row["id"] async for row in rows]
    in_thread = [
        chunk_id for chunk_id, chunk in zip(ids, chunks, strict=True) if chunk.thread is not None
    ]
    if in_thread:
        await PASSAGES.refresh_contexts(connection, chunk_ids=in_thread)
    return ids


async def _insert_passages(
    connection: Connection, principal: Principal, drafts: Sequence[Draft], at: datetime
) -> list[Passage]:
    rows: list[asyncpg.Record] = [
        row
        async for row in PASSAGES.insert_passages(
            connection,
            texts=[draft.text for draft in drafts],
            titles=[draft.title for draft in drafts],
            authors=[draft.author for draft in drafts],
            origins=[draft.origin for draft in drafts],
            sources=[draft.source for draft in drafts],
            threads=[draft.thread for draft in drafts],
            scopes=[draft.scope for draft in drafts],
            tags=[_write_list(draft.tags) for draft in drafts],
            entities=[
                _write_list(passage_text.find_entities(f"{draft.title}\n{draft.text}"))
                for draft in drafts
            ],
            tiers=[draft.tier for draft in drafts],
            importances=[draft.importance for draft in drafts],
            happened_at=[draft.happened_at or at for draft in drafts],
            import_keys=[draft.import_key for draft in drafts],
            principal=principal.name,
            agent_id=principal.agent_id,
            at=at,
        )
    ]
    return [Passage.of(row) for row in rows]


def _write_list(values: Sequence[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


def _pair(
    drafts: Sequence[Draft],
    passages: Sequence[Passage],
    pieces: Sequence[tuple[Indexed, ...]],
    made: Made,
) -> tuple[list[Chunk], Made]:
    """Return the chunks of the passages that are new, and their vectors.

    Rows come in the order of the drafts, without those that were there already.
    """
    chunks: list[Chunk] = []
    kept: list[str | None] = []
    left = list(reversed(passages))
    first = 0
    for draft, row in zip(drafts, pieces, strict=True):
        of_row = made.vectors[first : first + len(row)]
        first += len(row)
        if not left or (draft.import_key, draft.text) != (left[-1].import_key, left[-1].text):
            if draft.import_key is None:
                raise _not_verified(draft.text, left[-1].text if left else "")
            continue
        passage = left.pop()
        thread = thread_key(passage.thread, passage.id if len(row) > 1 else None)
        chunks += [
            Chunk(
                passage_id=passage.id,
                note_id=None,
                number=number,
                thread=thread,
                author=passage.author,
                title=" ".join((passage.title, *passage.tags)).strip(),
                indexed=indexed,
            )
            for number, indexed in enumerate(row, start=1)
        ]
        kept += of_row
    if left:
        raise _not_verified("", left[-1].text)
    return chunks, replace(made, vectors=tuple(kept))


def _not_verified(written: str, found: str) -> WriteNotVerified:
    return WriteNotVerified(
        "The database gave back another text than was given to it; nothing was written.",
        hint="Try again; if it stays so, look at the database's triggers.",
        expected_sha256=hashlib.sha256(written.encode()).hexdigest(),
        found_sha256=hashlib.sha256(found.encode()).hexdigest(),
    )
