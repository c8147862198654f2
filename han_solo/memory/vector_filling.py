"""Making the vectors that a model lacks: in batches that are each kept whole, so that it can stop.

After an import all of them are made at once, and the index of vectors after them where that is
faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import asyncpg

from ..embed.model import Embedder, write_vector
from ..embed.model import Vectors as Matrix
from ..store.database import Database
from . import passage_text
from .statements import VECTORS, load_indexes
from .threads import lock_threads
from .vector_indexing import build_index

FILL_ROWS: Final = 500

LONGEST_S: Final = 3_600.0
"""For one statement over all there is: millions of rows, or an index of them."""

BULK: Final = 2_000
"""From so many on, when it is more than there was, the index is made anew: that is faster."""

Tell = Callable[[int], None]
"""Is told how many more there are."""


async def fill_after_import(
    db: Database, embedder_id: int, embedder: Embedder, after_id: int, tell: Tell
) -> int:
    """Make the vectors that many new chunks lack, and the index after them.

    Args:
        db: the memory.
        embedder_id: the row of the model.
        embedder: the model.
        after_id: the last chunk that was there before.
        tell: is given how many more there are.

    Raises:
        EmbeddingFailed: the model failed; what was made until then is kept.
    """
    indexes = load_indexes(embedder_id, embedder.name.width)
    async with db.connection() as connection:
        counts = await VECTORS.count_stale(connection, embedder_id=embedder_id)
    is_bulk = counts["missing"] > max(BULK, counts["chunks"] // 2)
    if is_bulk:
        async with db.direct(statement_timeout_s=LONGEST_S) as connection:
            await indexes.drop_index(connection)
    try:
        filled = await fill(db, embedder_id, embedder, tell, after_import=after_id)
    finally:
        if is_bulk:
            async with db.direct(statement_timeout_s=LONGEST_S) as connection:
                await build_index(connection, indexes, embedder.name.width)
    return filled


async def fill(
    db: Database,
    embedder_id: int,
    embedder: Embedder,
    tell: Tell | None = None,
    *,
    after_import: int | None = None,
    most: int | None = None,
) -> int:
    """Make the vectors that a model lacks, in batches that are each kept whole.

    Args:
        db: the memory.
        embedder_id: the row of the model.
        embedder: the model.
        tell: is given how many more there are.
        after_import: the last chunk before an import, whose contexts are then made at once.
        most: stop when so many are made, or a few more.
    """
    filled = after_id = 0
    while True:
        async with db.connection() as connection:
            rows = [
                row
                async for row in VECTORS.list_stale(
                    connection,
                    embedder_id=embedder_id,
                    width=embedder.name.width,
                    after_id=after_id,
                    limit_rows=FILL_ROWS,
                )
            ]
        if not rows:
            break
        texts = [
            passage_text.embedded_text(
                row["text"],
                author=row["author"],
                title=row["title"],
                happened_at=row["happened_at"],
            )
            for row in rows
        ]
        vectors = await embedder.embed(texts, "passage")
        after_id = rows[-1]["id"]
        await _keep_filled(db, embedder_id, rows, vectors, alone=after_import is not None)
        filled += len(rows)
        if tell is not None:
            tell(len(rows))
        if most is not None and filled >= most:
            break
    if after_import is not None and filled:
        async with db.direct(statement_timeout_s=LONGEST_S) as connection:
            await VECTORS.join_vectors(connection, embedder_id=embedder_id, after_id=after_import)
    return filled


async def _keep_filled(
    db: Database,
    embedder_id: int,
    rows: Sequence[asyncpg.Record],
    vectors: Matrix,
    *,
    alone: bool,
) -> None:
    ids = [row["id"] for row in rows]
    async with db.transaction() as connection:
        await lock_threads(connection, [row["thread"] for row in rows])
        await VECTORS.insert_vectors(
            connection,
            embedder_id=embedder_id,
            chunk_ids=ids,
            hashes=[row["text_sha256"] for row in rows],
            vectors=[write_vector(vector) for vector in vectors],
        )
        if not alone:
            await VECTORS.refresh_vector_contexts(
                connection, embedder_id=embedder_id, chunk_ids=ids
            )
