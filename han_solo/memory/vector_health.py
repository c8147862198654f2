"""How the vectors of a memory are, asked of the provider itself, and what makes them well again.

A provider that changes its mind says nothing: what is written from then on has no vector, and
searches go by words alone. So it is asked for one vector now and then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from ..embed.model import EmbedderName
from ..errors import EmbeddingFailed, WrongWidth
from ..store.database import Database
from .embed_switch import PROBE
from .statements import VECTORS, load_indexes
from .vector_filling import LONGEST_S
from .vector_indexing import build_index
from .vectors import Model, Vectors, VectorState

REFILL_ROWS: Final = 20_000
"""At a time: a remedy has ten minutes, and the next one goes on."""


@dataclass(frozen=True, slots=True)
class VectorHealth:
    """How the vectors of the active model are.

    ``failure`` is why the provider made no vector when it was asked for one; ``returned_width`` how
    many numbers the vector had that it made. ``waiting`` are models that a switch began to fill and
    did not finish. While an import or a switch is under way (``is_busy``) vectors are missing that
    it will make, and the index may be.
    """

    state: VectorState
    failure: EmbeddingFailed | None
    returned_width: int | None
    has_index: bool
    waiting: tuple[Model, ...]
    is_busy: bool

    @property
    def name(self) -> EmbedderName:
        return self.state.name

    @property
    def strange_widths(self) -> tuple[int, ...]:
        """Return the widths of stored vectors that are not the model's."""
        return tuple(width for width in self.state.stored_widths if width != self.name.width)


class VectorCare:
    """Looks after the vectors of one memory; the guard ``embedding_width`` does."""

    def __init__(self, db: Database, open_vectors: Callable[[], Vectors]) -> None:
        self._db = db
        self._open = open_vectors

    async def look(self) -> VectorHealth | None:
        """Look at all of it, and ask the provider for a vector; None where nothing is embedded."""
        async with self._vectors() as vectors:
            models = await vectors.list_models()
            if not any(model.state == "active" for model in models):
                return None
            state = await vectors.state()
            failure, width = await _ask(vectors)
            async with self._db.connection() as connection:
                row = await VECTORS.fetch_active(connection)
                has_index = row is not None and await VECTORS.has_index(
                    connection, embedder_id=row["id"]
                )
                is_busy = await VECTORS.is_busy(connection)
        waiting = tuple(model for model in models if model.state == "filling")
        return VectorHealth(state, failure, width, has_index, waiting, is_busy)

    async def refill(self) -> int:
        """Make vectors that are missing, stale or of another width; return how many.

        Raises:
            EmbeddingFailed: the provider failed; what was made until then is kept.
        """
        async with self._vectors() as vectors:
            return await vectors.refill(most=REFILL_ROWS)

    async def rebuild_index(self) -> None:
        """Make the index of the active model's vectors anew."""
        async with self._vectors() as vectors:
            await vectors.settle()
        async with self._db.direct(statement_timeout_s=LONGEST_S) as connection:
            row = await VECTORS.fetch_active(connection)
            assert row is not None, "settled above"
            await build_index(connection, load_indexes(row["id"], row["width"]), row["width"])

    @asynccontextmanager
    async def _vectors(self) -> AsyncIterator[Vectors]:
        vectors = self._open()
        try:
            yield vectors
        finally:
            await vectors.close()


async def _ask(vectors: Vectors) -> tuple[EmbeddingFailed | None, int | None]:
    try:
        active = await vectors.active()
        found = await active.embedder.embed([PROBE], "passage")
    except WrongWidth as error:
        return error, error.width
    except EmbeddingFailed as error:
        return error, None
    return None, found.shape[1]
