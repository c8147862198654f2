"""Writing passages out, one JSON object a line: with notes, links, and what was put away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, Final

import asyncpg
import msgspec

from ..store.database import Connection, Database
from .transfer_line import LinkLine, NoteLine, PassageLine
from .transfer_queries import TRANSFER

PAGE: Final = 500
"""Passages in memory at a time."""

LONGEST_S: Final = 3600.0

REAL_DIGITS: Final = 6
"""What a ``real`` of Postgres tells apart below 1."""


async def count_passages(db: Database, scopes: Sequence[str] = ()) -> int:
    """Return how many there are to write out, archived ones too."""
    async with db.connection() as connection:
        return await TRANSFER.count_passages(connection, scopes=scopes or None)


async def export_lines(db: Database, scopes: Sequence[str] = ()) -> AsyncIterator[bytes]:
    """Yield each passage as a line, in the order they were written, as all were at one moment.

    Args:
        db: the memory.
        scopes: only these; all if there are none.
    """
    async with (
        db.direct(statement_timeout_s=LONGEST_S) as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        after_id = 0
        while rows := [
            row
            async for row in TRANSFER.list_passages(
                connection, after_id=after_id, scopes=scopes or None, limit_rows=PAGE
            )
        ]:
            after_id = rows[-1]["id"]
            for line in await _read_page(connection, rows):
                yield msgspec.json.encode(line) + b"\n"


async def _read_page(connection: Connection, rows: Sequence[asyncpg.Record]) -> list[PassageLine]:
    ids = [row["id"] for row in rows]
    notes: dict[int, list[NoteLine]] = defaultdict(list)
    async for row in TRANSFER.list_notes_on(connection, passage_ids=ids):
        notes[row["passage_id"]].append(NoteLine(text=row["text"], **_who(row)))
    links: dict[int, list[LinkLine]] = defaultdict(list)
    async for row in TRANSFER.list_links_from(connection, passage_ids=ids):
        links[row["from_id"]].append(
            LinkLine(to=row["to_key"], kind=row["kind"], note=row["note"], **_who(row))
        )
    return [
        PassageLine(
            key=row["key"],
            text=row["text"],
            title=row["title"],
            author=row["author"],
            origin=row["origin"],
            source=row["source"],
            thread=row["thread"],
            scope=row["scope"],
            tags=tuple(row["tags"]),
            tier=row["tier"],
            importance=round(row["importance"], REAL_DIGITS),
            happened_at=_time(row["happened_at"]),
            archived_at=_time(row["archived_at"]),
            archived_by=row["archived_by"],
            notes=tuple(notes[row["id"]]),
            links=tuple(links[row["id"]]),
            **_who(row),
        )
        for row in rows
    ]


def _who(row: asyncpg.Record) -> dict[str, Any]:
    return {
        "created_at": _time(row["created_at"]),
        "written_by": row["principal"],
        "agent_id": row["agent_id"],
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
