"""Notes on passages: dated, each a chunk of its own, so that search finds the passage by them."""

from __future__ import annotations

from ..clock import Clock
from ..errors import NotFound, UsageError
from ..principals import Principal
from ..store.database import Connection, Database
from ..store.text import require_storable
from . import passage_writing
from .passage_model import MAX_ID, MAX_NOTE_CHARS, Note, Passage
from .statements import PASSAGES
from .threads import lock_threads
from .vectors import Vectors
from .word_counting import count_words_if_due


async def enrich(
    db: Database,
    vectors: Vectors,
    principal: Principal,
    passage_id: int,
    text: str,
    *,
    clock: Clock,
) -> Note:
    """Add a dated note to a passage.

    Raises:
        NotFound: there is none of that id.
        UsageError: the note is empty, too long or not storable, or the passage is archived.
    """
    require_storable(text, "The note", max_chars=MAX_NOTE_CHARS)
    at = clock.now()
    async with db.connection() as connection:
        passage = await fetch_passage(connection, passage_id)
    pieces = passage_writing.index_text(
        text, author=passage.author, title=passage.title, happened_at=at
    )
    # Made before the transaction: a provider that takes long holds up nobody.
    made = await vectors.make([piece.embedded for piece in pieces])
    thread = passage_writing.thread_key(None, passage.id)
    async with db.transaction() as connection:
        await lock_threads(connection, [thread])
        held = await PASSAGES.lock_passage(connection, passage_id=passage_id)
        if held is None:
            raise not_found(passage_id)
        if held["archived_at"] is not None:
            raise UsageError(
                f"Passage {passage_id} is archived.",
                hint="Restore it first; nothing was written.",
            )
        row = await PASSAGES.insert_note(
            connection,
            passage_id=passage_id,
            text=text,
            principal=principal.name,
            agent_id=principal.agent_id,
            at=at,
        )
        chunks = [
            passage_writing.Chunk(
                passage_id=passage_id,
                note_id=row["id"],
                number=number,
                thread=thread,
                author=passage.author,
                title=passage.title,
                indexed=indexed,
            )
            for number, indexed in enumerate(pieces, start=1)
        ]
        ids = await passage_writing.write_chunks(connection, chunks)
        hashes = [chunk.indexed.sha256 for chunk in chunks]
        await vectors.keep(connection, made, ids, hashes, in_thread=True)
    await count_words_if_due(db, clock)
    return Note(**row)


async def fetch_passage(connection: Connection, passage_id: int) -> Passage:
    """Read a passage, archived or not.

    Raises:
        NotFound: there is none of that id.
    """
    row = await PASSAGES.fetch_passage(connection, passage_id=check_id(passage_id))
    if row is None:
        raise not_found(passage_id)
    return Passage.of(row)


def check_id(passage_id: int) -> int:
    """Return an id that the database can look for.

    Raises:
        NotFound: it can be nobody's.
    """
    if not 1 <= passage_id <= MAX_ID:
        raise not_found(passage_id)
    return passage_id


def not_found(passage_id: int) -> NotFound:
    """Say that there is no such passage."""
    return NotFound(
        f"There is no passage {passage_id}; nothing was changed.",
        hint="passage_search gives the ids there are.",
    )
