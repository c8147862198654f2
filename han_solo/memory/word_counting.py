"""Counting how often each word occurs, which ranking by words needs.

It is counted anew each time the memory has grown by a fifth, so it costs little in all and is never
far behind; being behind changes weights a little and hides nothing.
"""

from __future__ import annotations

from typing import Final

from ..clock import Clock
from ..store.database import Database
from .statements import PASSAGES

GROWTH: Final = 0.2
LEAST: Final = 20

LONGEST_S: Final = 3_600.0
"""It looks at every word of millions of chunks."""


async def count_words_if_due(db: Database, clock: Clock, *, at_once: bool = False) -> bool:
    """Count when enough was added since, unless someone else does; say whether it was done.

    Args:
        db: where.
        clock: the time.
        at_once: however little was added.
    """
    async with db.connection() as connection:
        row = await PASSAGES.fetch_counting(connection)
    if not at_once and row["added"] < LEAST + GROWTH * row["counted"]:
        return False
    async with db.direct(statement_timeout_s=LONGEST_S) as connection, connection.transaction():
        if not await PASSAGES.try_counting_lock(connection):
            return False
        await PASSAGES.count_words(connection)
        await PASSAGES.count_totals(connection, at=clock.now())
    return True
