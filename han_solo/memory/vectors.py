"""The vectors of what is stored: which model makes them, and how those that lack are made.

The database says which model is searched by, so that all processes agree; its key and address come
from the settings. A passage is written whether or not a vector can be made at that moment: it is
then found by its words, and its vector is made later, by ``fill``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import asyncpg

from .. import logs
from ..clock import Clock
from ..embed.model import Embedder, EmbedderName, write_vector
from ..errors import EmbeddingFailed, SettingsError
from ..store.database import Connection, Database
from . import vector_filling
from .statements import VECTORS, load_indexes
from .vector_filling import Tell

_log = logs.get("memory")

KNOWN_S: Final = 5.0
"""How long it is believed which model is active. A switch waits longer before it ends."""


@dataclass(frozen=True, slots=True)
class Active:
    """The model that is searched by."""

    id: int
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class Made:
    """Vectors of some texts, or why there are none."""

    embedder_id: int
    vectors: tuple[str | None, ...]
    failure: EmbeddingFailed | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """A model that made vectors; one is ``active``, others ``filling`` or ``retired``."""

    name: EmbedderName
    state: str
    vectors: int


@dataclass(frozen=True, slots=True)
class VectorState:
    """What the stored vectors of a model are like.

    ``missing`` chunks have none, ``changed`` ones have one of an older text; ``stored_widths`` are
    those that the vectors really have.
    """

    name: EmbedderName
    chunks: int
    missing: int
    changed: int
    stored_widths: tuple[int, ...]

    @property
    def stale(self) -> int:
        return self.missing + self.changed


class Vectors:
    """Makes and keeps vectors; used by passages, search, ``embed`` commands and a guard."""

    def __init__(
        self,
        db: Database,
        wanted: EmbedderName,
        make: Callable[[EmbedderName], Embedder],
        clock: Clock | None = None,
    ) -> None:
        """Bind them.

        Args:
            db: where they are kept.
            wanted: the model to begin with in a memory that has none yet.
            make: makes the embedder of a name, or raises ``SettingsError``.
            clock: the time.
        """
        self._db = db
        self._wanted = wanted
        self._make = make
        self._clock = clock or Clock()
        self._active: Active | None = None
        self._former: list[Embedder] = []
        self._known_until_s = 0.0

    async def close(self) -> None:
        if self._active is not None:
            await self._active.embedder.close()
        while self._former:
            await self._former.pop().close()

    def forget(self) -> None:
        """Look up anew which model is active."""
        self._known_until_s = 0.0

    async def active(self) -> Active:
        """Return the model that is searched by; a memory that has none begins with the wanted one.

        Raises:
            EmbeddingFailed: its key is not set.
        """
        if self._active is not None and time.monotonic() < self._known_until_s:
            return self._active
        found_id, name = await self._look_up()
        if self._active is None or self._active.id != found_id:
            try:
                embedder = self._make(name)
            except SettingsError as error:
                raise EmbeddingFailed(error.message, hint=error.hint) from error
            if self._active is not None:
                self._former.append(self._active.embedder)  # others may be asking it still
            self._active = Active(found_id, embedder)
        self._known_until_s = time.monotonic() + KNOWN_S
        return self._active

    async def settle(self) -> None:
        """See to it that some model is active, as it is once anything was written or searched."""
        await self._look_up()

    async def list_models(self) -> tuple[Model, ...]:
        """List the models that made vectors."""
        async with self._db.connection() as connection:
            rows = [row async for row in VECTORS.list_embedders(connection)]
        return tuple(
            Model(
                EmbedderName(row["provider"], row["model"], row["width"]),
                row["state"],
                row["vectors"],
            )
            for row in rows
        )

    async def _look_up(self) -> tuple[int, EmbedderName]:
        async with self._db.transaction() as connection:
            row = await VECTORS.fetch_active(connection)
            if row is None:
                name = self._wanted
                await VECTORS.insert_embedder(
                    connection,
                    provider=name.provider,
                    model=name.model,
                    width=name.width,
                    state="active",
                    at=self._clock.now(),
                )
                row = await VECTORS.fetch_active(connection)
                if row is None:
                    raise AssertionError("the row was added, by us or by another process")
                await load_indexes(row["id"], row["width"]).make_index(connection)
        return row["id"], EmbedderName(row["provider"], row["model"], row["width"])

    async def make(self, texts: Sequence[str]) -> Made:
        """Make the vectors of passages; a failure is returned: they are written all the same."""
        try:
            active = await self.active()
            rows = await active.embedder.embed(texts, "passage")
        except EmbeddingFailed as error:
            _log.warning("memory.embedding_failed", reason=str(error), texts=len(texts))
            return Made(0, (), error)
        return Made(active.id, tuple(map(write_vector, rows)))

    async def keep(
        self,
        connection: Connection,
        made: Made,
        chunk_ids: Sequence[int],
        hashes: Sequence[bytes],
        *,
        in_thread: bool,
    ) -> None:
        """Keep them in the transaction that wrote their chunks."""
        if made.failure is not None:
            return
        await VECTORS.insert_vectors(
            connection,
            embedder_id=made.embedder_id,
            chunk_ids=chunk_ids,
            hashes=hashes,
            vectors=made.vectors,
        )
        if in_thread:
            await VECTORS.refresh_vector_contexts(
                connection, embedder_id=made.embedder_id, chunk_ids=chunk_ids
            )

    async def state(self, active_id: int | None = None) -> VectorState:
        """Tell what the stored vectors of the active model are like, or those of another."""
        async with self._db.connection() as connection:
            rows = [row async for row in VECTORS.list_embedders(connection)]
            row = next(
                (r for r in rows if r["id"] == active_id or (not active_id and _is_active(r))), None
            )
            if row is None:
                return VectorState(self._wanted, 0, 0, 0, ())
            counts = await VECTORS.count_stale(connection, embedder_id=row["id"])
            widths = [
                found["width"]
                async for found in VECTORS.find_widths(connection, embedder_id=row["id"])
            ]
        return VectorState(
            EmbedderName(row["provider"], row["model"], row["width"]),
            counts["chunks"],
            counts["missing"],
            counts["changed"],
            tuple(sorted(widths)),
        )

    async def refill(self, tell: Tell | None = None, *, most: int | None = None) -> int:
        """Make the vectors that the active model lacks, ``most`` of them, and return how many.

        Raises:
            EmbeddingFailed: the model failed; what was made until then is kept.
        """
        active = await self.active()
        return await vector_filling.fill(self._db, active.id, active.embedder, tell, most=most)

    async def fill_after_import(self, after_id: int, tell: Tell) -> int:
        """Make the vectors that many new chunks lack; see ``vector_filling``."""
        active = await self.active()
        return await vector_filling.fill_after_import(
            self._db, active.id, active.embedder, after_id, tell
        )

    async def fill(self, embedder_id: int, embedder: Embedder, tell: Tell | None = None) -> int:
        """Make the vectors that a model lacks; see ``vector_filling``."""
        return await vector_filling.fill(self._db, embedder_id, embedder, tell)


def _is_active(row: asyncpg.Record) -> bool:
    return bool(row["state"] == "active")
