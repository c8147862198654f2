"""Passages: what is remembered in prose, written once, added to, linked, put away, and found.

The agent's tools, other MCP clients, commands and jobs all come by here. Nothing is deleted:
archiving hides a passage until it is restored, and a foundational one can not even be hidden.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import Final

from ..clock import Clock
from ..errors import EmbeddingFailed, UsageError
from ..principals import Principal
from ..store.database import Database
from . import access_log, mri, passage_import, passage_links, passage_notes, passage_writing
from .access_log import Verdict
from .mri import Mri
from .passage_import import Tell
from .passage_model import (
    Change,
    Draft,
    Imported,
    Incoming,
    Linked,
    Note,
    Passage,
    Whole,
    Written,
)
from .passage_notes import check_id, fetch_passage
from .search import Search
from .search_model import DEFAULT_LIMIT, Filters, Found, Weights
from .statements import PASSAGES
from .vector_filling import LONGEST_S
from .vectors import Made, Vectors
from .word_counting import count_words_if_due


class Passages:
    """The passages of one installation, shared by its agents and clients."""

    def __init__(
        self,
        db: Database,
        vectors: Vectors,
        clock: Clock | None = None,
        *,
        weights: Weights | None = None,
    ) -> None:
        self._db = db
        self._clock = clock or Clock()
        self.vectors: Final = vectors
        self._search = Search(db, vectors, self._clock, weights=weights)

    @property
    def db(self) -> Database:
        """The database that they are kept in."""
        return self._db

    @property
    def weights(self) -> Weights:
        """What search ranks by; a bench takes parts of it away."""
        return self._search.weights

    @weights.setter
    def weights(self, weights: Weights) -> None:
        self._search.weights = weights

    async def insert(self, principal: Principal, draft: Draft) -> Written:
        """Write a passage and return it as the database stored it.

        When no vector can be made at that moment it is written all the same, found by its words,
        and the result says why.

        Raises:
            UsageError: a part of it is empty, too long or not storable, or was imported before.
        """
        draft.check()
        passages, chunks, made = await self._write(principal, [draft])
        if not passages:
            raise UsageError(
                f"There is a passage of the import key {draft.import_key!r} already.",
                hint="Nothing was written.",
            )
        await count_words_if_due(self._db, self._clock)
        return Written(passages[0], chunks, _pending(made))

    async def insert_many(
        self, principal: Principal, drafts: Sequence[Draft], tell: Tell | None = None
    ) -> Imported:
        """Write many; those whose import key is there already are left out.

        Each batch is one transaction: what cuts an import short leaves whole ones behind, and a
        second run with import keys goes on where the first one stopped.

        Raises:
            UsageError: one of them can not be written; nothing was.
        """
        for draft in drafts:
            draft.check()
        return await self.import_batches(principal, _one_batch(drafts), tell)

    async def import_batches(
        self,
        principal: Principal,
        batches: AsyncIterable[Sequence[Incoming]],
        tell: Tell | None = None,
    ) -> Imported:
        """Write what was checked, batch after batch; see ``insert_many``.

        A thread may go on from one batch to the next. Contexts and vectors are made at the end.
        """
        async with self._db.direct() as held:
            await passage_import.QUERIES.hold_import(held)
            return await self._import(principal, batches, tell or _tell_nobody)

    async def _import(
        self, principal: Principal, batches: AsyncIterable[Sequence[Incoming]], tell: Tell
    ) -> Imported:
        at = self._clock.now()
        async with self._db.connection() as connection:
            after_id = await passage_import.QUERIES.last_chunk(connection)
        ids: list[int] = []
        given = 0
        async for batch in batches:
            given += len(batch)
            ids += await passage_import.write_rows(self._db, principal, batch, at, tell)
        async with self._db.direct(statement_timeout_s=LONGEST_S) as connection:
            await passage_import.QUERIES.settle_words(connection)
            await passage_import.QUERIES.join_contexts(connection, after_id=after_id)
        await count_words_if_due(self._db, self._clock)
        pending = None
        try:
            await self.vectors.fill_after_import(after_id, lambda count: tell("embedded", count))
        except EmbeddingFailed as error:
            pending = str(error)
        return Imported(tuple(ids), given - len(ids), pending)

    async def get(self, principal: Principal, passage_id: int) -> Whole:
        """Read a passage with its notes and links, and note that it was read.

        Raises:
            NotFound: there is none of that id.
        """
        async with self._db.transaction() as connection:
            passage = await fetch_passage(connection, passage_id)
            notes = [
                Note(**row) async for row in PASSAGES.list_notes(connection, passage_id=passage_id)
            ]
            links = await passage_links.read_links(connection, passage_id)
            count, last = await access_log.read_access(connection, passage_id)
            await access_log.note_read(connection, principal, passage_id, self._clock.now())
        return Whole(passage, tuple(notes), links, count, last)

    async def search(
        self,
        principal: Principal,
        queries: str | Sequence[str],
        *,
        filters: Filters | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Found:
        """Search; see ``search.Search.search``."""
        return await self._search.search(principal, queries, filters=filters, limit=limit)

    async def promote(self, passage_id: int) -> Change:
        """Make a passage foundational for ever.

        Raises:
            NotFound: there is none of that id.
            UsageError: it is archived.
        """
        async with self._db.transaction() as connection:
            before = await fetch_passage(connection, passage_id)
            if before.tier == "foundational":
                return Change(before, changed=False)
            if await PASSAGES.promote_passage(connection, passage_id=passage_id) is None:
                raise UsageError(
                    f"Passage {passage_id} is archived and can not become foundational.",
                    hint="Restore it first; nothing was changed.",
                )
            return Change(await fetch_passage(connection, passage_id), changed=True)

    async def archive(self, principal: Principal, passage_id: int) -> Change:
        """Hide a passage from search until it is restored.

        Raises:
            NotFound: there is none of that id.
            UsageError: it is foundational.
        """
        async with self._db.transaction() as connection:
            # First, and alone: a statement does not see the chunks that another one adds while it
            # waits for the passage, and would leave a note of that moment in search.
            await PASSAGES.lock_passage(connection, passage_id=check_id(passage_id))
            found = await PASSAGES.archive_passage(
                connection,
                passage_id=passage_id,
                principal=principal.name,
                at=self._clock.now(),
            )
            passage = await fetch_passage(connection, passage_id)
        if passage.tier == "foundational":
            raise UsageError(
                f"Passage {passage_id} is foundational: it stays in view.",
                hint="Add a note to it (enrich_passage) instead; nothing was changed.",
            )
        return Change(passage, changed=found is not None)

    async def restore(self, passage_id: int) -> Change:
        """Bring an archived passage back into search.

        Raises:
            NotFound: there is none of that id.
        """
        async with self._db.transaction() as connection:
            await PASSAGES.lock_passage(connection, passage_id=check_id(passage_id))
            found = await PASSAGES.restore_passage(connection, passage_id=passage_id)
            return Change(await fetch_passage(connection, passage_id), changed=found is not None)

    async def enrich(self, principal: Principal, passage_id: int, text: str) -> Note:
        """Add a dated note to a passage; search finds the passage by it too.

        Raises:
            NotFound: there is none of that id.
            UsageError: the note is empty, too long or not storable, or the passage is archived.
        """
        return await passage_notes.enrich(
            self._db, self.vectors, principal, passage_id, text, clock=self._clock
        )

    async def link(
        self, principal: Principal, from_id: int, to_id: int, *, kind: str, note: str = ""
    ) -> bool:
        """Link two passages; False when they are linked so already.

        Raises:
            NotFound: one of them is not there.
            UsageError: they are one, or the kind is no word.
        """
        return await passage_links.link(
            self._db, principal, from_id, to_id, kind=kind, note=note, at=self._clock.now()
        )

    async def linked(self, passage_id: int) -> tuple[Linked, ...]:
        """Return what a passage is linked with, in both directions.

        Raises:
            NotFound: there is none of that id.
        """
        async with self._db.connection() as connection:
            await fetch_passage(connection, passage_id)
            return await passage_links.read_links(connection, passage_id)

    async def unlink(self, from_id: int, to_id: int, *, kind: str | None = None) -> int:
        """Take away the links between two passages, and return how many there were."""
        return await passage_links.unlink(self._db, from_id, to_id, kind=kind)

    async def note_shown(
        self, search_id: int, passage_ids: Sequence[int], linked_ids: Sequence[int]
    ) -> None:
        """Say what of a search was shown; see ``access_log.note_shown``."""
        await access_log.note_shown(self._db, search_id, passage_ids, linked_ids)

    async def log_access(
        self, principal: Principal, search_id: int, used_ids: Sequence[int], *, note: str = ""
    ) -> Verdict:
        """Say what a search was good for; see ``access_log.log_access``."""
        return await access_log.log_access(
            self._db, principal, search_id, used_ids, note=note, at=self._clock.now()
        )

    async def mri(self, *, days: int = mri.DEFAULT_DAYS, zone: str = "UTC") -> Mri:
        """Look through the memory for what is never found, and what never finds; see ``mri``."""
        return await mri.look_through(self._db, self._clock.now(), days=days, zone=zone)

    async def count_words(self) -> None:
        """Count anew how often each word occurs, after a bulk of changes."""
        await count_words_if_due(self._db, self._clock, at_once=True)

    async def _write(
        self, principal: Principal, drafts: Sequence[Draft]
    ) -> tuple[list[Passage], int, Made]:
        return await passage_writing.write_drafts(
            self._db, self.vectors, principal, drafts, self._clock.now()
        )


async def _one_batch(drafts: Sequence[Draft]) -> AsyncIterator[Sequence[Incoming]]:
    yield [Incoming(draft=draft) for draft in drafts]


def _tell_nobody(_what: str, _count: int) -> None:
    """Drop it."""


def _pending(made: Made) -> str | None:
    return None if made.failure is None else str(made.failure)
