"""The access log: each search logs itself; what it was good for is added by whoever asked.

Without the second half nobody could tell a passage that helps from one that is only found. A word
on a search may be taken back by a later one; the search itself stays as it was logged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..errors import NotFound, UsageError
from ..principals import Principal
from ..store.database import Connection, Database
from ..store.text import require_storable
from .passage_links import MAX_NOTE_CHARS
from .passage_model import MAX_ID
from .statements import ACCESS


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was said of a search: the ids that it showed, and those of use among them."""

    search_id: int
    queries: tuple[str, ...]
    shown_ids: tuple[int, ...]
    used_ids: tuple[int, ...]


async def note_shown(
    db: Database, search_id: int, passage_ids: Sequence[int], linked_ids: Sequence[int]
) -> None:
    """Keep in the log of a search what a reply had room for: the rest was seen by nobody."""
    async with db.transaction() as connection:
        await ACCESS.trim_search(
            connection, search_id=search_id, passage_ids=passage_ids, linked_ids=linked_ids
        )


async def log_access(
    db: Database,
    principal: Principal,
    search_id: int,
    used_ids: Sequence[int],
    *,
    note: str,
    at: datetime,
) -> Verdict:
    """Say which of the passages that a search showed were of use; the others were of none.

    Raises:
        NotFound: there is no such search.
        UsageError: it did not show one of these passages, or the note can not be kept.
    """
    require_storable(note, "The note", max_chars=MAX_NOTE_CHARS, min_chars=0)
    async with db.transaction() as connection:
        row = None
        if 1 <= search_id <= MAX_ID:
            row = await ACCESS.fetch_search(connection, search_id=search_id)
        if row is None:
            raise NotFound(
                f"There is no search {search_id}; nothing was logged.",
                hint="Each reply of passage_search has its search_id.",
            )
        shown = tuple(dict.fromkeys([*row["passage_ids"], *row["linked_ids"]]))
        foreign = [number for number in used_ids if number not in shown]
        if foreign:
            listed = ", ".join(map(str, shown)) or "none"
            raise UsageError(
                f"Search {search_id} did not show passage {foreign[0]}; nothing was logged.",
                hint=f"It showed {listed}.",
            )
        used = tuple(number for number in shown if number in used_ids)
        await ACCESS.put_verdicts(
            connection,
            search_id=search_id,
            used_ids=used,
            note=note,
            principal=principal.name,
            agent_id=principal.agent_id,
            at=at,
        )
    return Verdict(search_id, tuple(row["queries"]), shown, used)


async def read_access(connection: Connection, passage_id: int) -> tuple[int, datetime | None]:
    """Return how often a passage was shown by a search or read, and when last."""
    row = await ACCESS.fetch_access(connection, passage_id=passage_id)
    return row["access_count"], row["accessed_at"]


async def note_read(
    connection: Connection, principal: Principal, passage_id: int, at: datetime
) -> None:
    """Note that a passage was read whole."""
    await ACCESS.insert_read(
        connection,
        passage_id=passage_id,
        principal=principal.name,
        agent_id=principal.agent_id,
        at=at,
    )
