"""Switching the model that search goes by, without an outage.

The new model's vectors are filled beside the old one's, which search goes by until all are there;
then it is one row that changes. What is cut short goes on where it stopped, since each batch is
kept. The old vectors stay, so that switching back is quick.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..clock import Clock
from ..embed.model import Embedder, EmbedderName, write_vector
from ..errors import EmbeddingFailed, UsageError
from ..store.database import Database
from .statements import VECTORS, load_indexes
from .vector_filling import LONGEST_S
from .vector_indexing import build_index
from .vectors import KNOWN_S, Vectors

PROBE = "A short text."


@dataclass(frozen=True, slots=True)
class Switched:
    """What a switch came to; ``filled`` is how many vectors were made."""

    name: EmbedderName
    filled: int
    was_active: bool


async def switch_embedder(
    db: Database,
    vectors: Vectors,
    embedder: Embedder,
    *,
    clock: Clock,
    begin: Callable[[int], None],
    tell: Callable[[int], None],
) -> Switched:
    """Fill the model's vectors, index them, and search by them from then on.

    Args:
        db: where.
        vectors: of this process; it looks up anew which model is active.
        embedder: the new model.
        clock: the time.
        begin: is given how many vectors are to be made.
        tell: is given how many more there are.

    Raises:
        EmbeddingFailed: the model failed, or returns another width; search goes by the old one.
        UsageError: another process is switching.
    """
    (probe,) = await embedder.embed([PROBE], "passage")  # before anything is written
    if write_vector(probe) is None:
        raise EmbeddingFailed(
            f"{embedder.name.model} returned a vector without length for {PROBE!r}.",
            hint="Choose a model that embeds plain text; nothing was changed.",
        )
    await vectors.settle()
    name = embedder.name
    async with db.direct(statement_timeout_s=LONGEST_S) as connection:
        if not await VECTORS.try_switch_lock(connection):
            raise UsageError(
                "Another process is switching the embedder.",
                hint="Wait for it; `han-solo embed status` shows how far it is.",
            )
        found = await VECTORS.find_embedder(
            connection, provider=name.provider, model=name.model, width=name.width
        )
        if found is None:
            row = await VECTORS.insert_embedder(
                connection,
                provider=name.provider,
                model=name.model,
                width=name.width,
                state="filling",
                at=clock.now(),
            )
            if row is None:
                raise AssertionError("the lock is ours, and there was no such row")
            embedder_id, was_active = row["id"], False
        else:
            embedder_id, was_active = found["id"], found["state"] == "active"
            await VECTORS.set_filling(connection, embedder_id=embedder_id)
        counts = await VECTORS.count_stale(connection, embedder_id=embedder_id)
        begin(counts["missing"] + counts["changed"])
        indexes = load_indexes(embedder_id, name.width)
        if not was_active:
            await indexes.drop_index(connection)  # one that was cut short is of no use
        filled = await vectors.fill(embedder_id, embedder, tell)
        if was_active:
            return Switched(name, filled, was_active=True)
        await build_index(connection, indexes, name.width)
        filled += await vectors.fill(embedder_id, embedder, tell)
        async with connection.transaction():
            await VECTORS.retire_active(connection, except_id=embedder_id)
            await VECTORS.activate_embedder(connection, embedder_id=embedder_id, at=clock.now())
        vectors.forget()
        # Those who did not hear of it yet write passages without a vector for so long.
        await clock.sleep(KNOWN_S + 1)
        filled += await vectors.fill(embedder_id, embedder, tell)
    return Switched(name, filled, was_active=False)
