"""What was remembered on a day, for the dream that looks back at it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ..store.database import Database
from .statements import PASSAGES

MAX_PASSAGES: Final = 60
MAX_CHARS: Final = 400
"""Of each: a reminder of what was written, which search has whole."""


async def list_made(db: Database, since: datetime, until: datetime) -> tuple[str, ...]:
    """Return the passages written in ``[since, until)`` as lines, oldest first.

    What was imported in it is left out, since it is not of that day.
    """
    async with db.connection() as connection:
        rows = PASSAGES.list_made(
            connection, since=since, until=until, max_chars=MAX_CHARS, limit_rows=MAX_PASSAGES
        )
        return tuple(
            [
                f"{row['created_at']:%H:%M} {row['author']}: "
                + (f"{row['title']}: " if row["title"] else "")
                + row["beginning"]
                + ("…" if row["text_chars"] > MAX_CHARS else "")
                async for row in rows
            ]
        )
