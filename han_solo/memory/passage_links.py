"""Links between passages: which belongs to which, and why.

They add to what a search found, after it has ranked, and take nothing from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import asyncpg

from ..errors import NotFound, UsageError
from ..principals import Principal
from ..store.database import Connection, Database
from ..store.text import require_storable
from .passage_model import Linked
from .search_model import LinkedHit
from .statements import LINKS

MAX_NOTE_CHARS: Final = 500

LINKED_FOR_EACH: Final = 3
"""So that one passage that is linked with everything does not fill the reply."""

MAX_LINKED: Final = 10
"""Beside the hits of one search."""

_KIND: Final = re.compile(r"[a-z][a-z_]{0,31}")


async def read_links(connection: Connection, passage_id: int) -> tuple[Linked, ...]:
    """Return what a passage is linked with, in both directions."""
    return tuple(
        [Linked(**row) async for row in LINKS.list_links(connection, passage_id=passage_id)]
    )


async def expand(
    connection: Connection,
    search_id: int,
    passage_ids: Sequence[int],
    *,
    include_archived: bool,
) -> tuple[tuple[LinkedHit, ...], int]:
    """Return what the passages that a search found are linked with, and how many more there are.

    Each comes once, after the best hit that leads to it; none is a hit itself. The search's log
    names them.
    """
    if not passage_ids:
        return (), 0
    rows = [
        row
        async for row in LINKS.expand_links(
            connection,
            search_id=search_id,
            passage_ids=passage_ids,
            include_archived=include_archived,
            each_rows=LINKED_FOR_EACH,
            limit_rows=MAX_LINKED,
        )
    ]
    if not rows:
        return (), 0
    return tuple(map(_read, rows)), rows[0]["linked_rows"] - len(rows)


def _read(row: asyncpg.Record) -> LinkedHit:
    values = dict(row)
    del values["linked_rows"]
    return LinkedHit(**{**values, "tags": tuple(row["tags"])})


async def link(
    db: Database,
    principal: Principal,
    from_id: int,
    to_id: int,
    *,
    kind: str,
    note: str,
    at: datetime,
) -> bool:
    """Link two passages; False when they are linked so already.

    Raises:
        NotFound: one of them is not there.
        UsageError: they are one, or the kind is no word.
    """
    check_kind(kind)
    require_storable(note, "The link's note", max_chars=MAX_NOTE_CHARS, min_chars=0)
    if from_id == to_id:
        raise UsageError(f"Passage {from_id} can not be linked with itself.", hint="Give two ids.")
    async with db.transaction() as connection:
        await _require(connection, from_id, to_id)
        made = await LINKS.insert_link(
            connection,
            from_id=from_id,
            to_id=to_id,
            kind=kind,
            note=note,
            principal=principal.name,
            agent_id=principal.agent_id,
            at=at,
        )
    return made is not None


async def unlink(db: Database, from_id: int, to_id: int, *, kind: str | None) -> int:
    """Take away the links between two passages, and return how many there were.

    Raises:
        NotFound: one of them is not there.
        UsageError: the kind is no word.
    """
    if kind is not None:
        check_kind(kind)
    async with db.transaction() as connection:
        await _require(connection, from_id, to_id)
        rows = LINKS.delete_links(connection, from_id=from_id, to_id=to_id, kind=kind)
        return len([row async for row in rows])


async def _require(connection: Connection, *passage_ids: int) -> None:
    in_range = [number for number in passage_ids if 1 <= number < 2**63]
    missing = [number for number in passage_ids if number not in in_range]
    rows = LINKS.find_missing(connection, passage_ids=in_range)
    missing += [row["id"] async for row in rows]
    if missing:
        raise NotFound(
            f"There is no passage {missing[0]}; nothing was changed.",
            hint="passage_search gives the ids there are.",
        )


def check_kind(kind: str) -> None:
    """Raise ``UsageError`` for what is no word."""
    if not _KIND.fullmatch(kind):
        raise UsageError(
            f"{kind[:40]!r} is no kind of link.",
            hint="Use a word such as related, follows, supports or contradicts.",
        )
