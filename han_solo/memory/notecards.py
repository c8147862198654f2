"""Notecards: short notes of what surfaced mid-conversation and nobody should forget.

Not tasks and not passages: a text, who it is from, and when. The agent's tools, other MCP clients
and the page all come by here. Nothing is deleted; archiving hides a card from the default view.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final, Protocol

import asyncpg

from ..clock import Clock
from ..errors import NotFound, StoreError, UsageError
from ..principals import Principal
from ..store.database import Connection, Database
from ..store.queries import load_queries
from ..store.text import require_storable
from .notecard_model import (
    DEFAULT_LIMIT,
    MAX_CREATOR_CHARS,
    MAX_ID,
    MAX_LIMIT,
    MAX_TEXT_CHARS,
    SOURCES,
    Change,
    Filter,
    Notecard,
    Page,
    Source,
    Status,
    read_cursor,
)

_STATUSES: Final[dict[Filter, tuple[Status, ...]]] = {
    "not_archived": ("active", "completed"),
    "active": ("active",),
    "completed": ("completed",),
    "archived": ("archived",),
    "all": ("active", "completed", "archived"),
}
_MOVES: Final[dict[Status, tuple[Status, ...]]] = {
    # An archived card was put away on purpose: completing it would bring it back to view.
    "completed": ("active",),
    "archived": ("active", "completed"),
    "active": ("completed", "archived"),
}
"""To each status, those it can be reached from."""

_MOVE_TRIES: Final = 50
"""Each try loses to another caller's move; so many in a row are no accident."""


class _Queries(Protocol):
    async def insert_notecard(
        self,
        conn: Connection,
        *,
        text: str,
        creator: str,
        source: str,
        principal: str,
        agent_id: str | None,
        at: datetime,
    ) -> asyncpg.Record: ...
    async def fetch_notecard(
        self, conn: Connection, *, notecard_id: int
    ) -> asyncpg.Record | None: ...
    def list_notecards(
        self, conn: Connection, *, statuses: tuple[str, ...], before_id: int, limit_rows: int
    ) -> AsyncIterator[asyncpg.Record]: ...
    def list_made(
        self, conn: Connection, *, since: datetime, until: datetime
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def change_status(
        self,
        conn: Connection,
        *,
        notecard_id: int,
        from_statuses: tuple[str, ...],
        to_status: str,
        principal: str,
        at: datetime,
    ) -> asyncpg.Record | None: ...


_QUERIES: Final = load_queries("notecards", _Queries)


class Notecards:
    """The notecards of one installation, shared by its agents and clients."""

    def __init__(self, db: Database, clock: Clock | None = None) -> None:
        self._db = db
        self._clock = clock or Clock()

    async def create(
        self, principal: Principal, *, text: str, creator: str, source: Source = "chat"
    ) -> Notecard:
        """Write an active notecard and return it as the database stored it.

        Raises:
            UsageError: text or creator is empty, too long or not storable; an unknown source.
        """
        require_storable(text, "The notecard's text", max_chars=MAX_TEXT_CHARS)
        name = require_storable(
            creator.strip(), "The notecard's creator", max_chars=MAX_CREATOR_CHARS
        )
        if not name.isprintable():
            raise UsageError(
                "The notecard's creator has a line break or a control character in it.",
                hint="Give a name alone, such as scott; nothing was written.",
            )
        if source not in SOURCES:
            raise UsageError(f"There is no source {source!r}.", hint=f"Use {' or '.join(SOURCES)}.")
        async with self._db.transaction() as connection:
            row = await _QUERIES.insert_notecard(
                connection,
                text=text,
                creator=name,
                source=source,
                principal=principal.name,
                agent_id=principal.agent_id,
                at=self._clock.now(),
            )
        return Notecard(**row)

    async def get(self, notecard_id: int) -> Notecard:
        """Return one notecard, whatever its status.

        Raises:
            NotFound: there is none of that id.
        """
        _check_id(notecard_id)
        async with self._db.connection() as connection:
            row = await _QUERIES.fetch_notecard(connection, notecard_id=notecard_id)
        if row is None:
            raise _not_found(notecard_id)
        return Notecard(**row)

    async def list(
        self,
        *,
        status: Filter = "not_archived",
        limit: int = DEFAULT_LIMIT,
        cursor: str | None = None,
    ) -> Page:
        """List notecards, newest first.

        Args:
            status: which ones; archived ones only when asked for.
            limit: cards, 1 to ``MAX_LIMIT``.
            cursor: ``next_cursor`` of the page before.

        Raises:
            UsageError: an unknown status, a limit out of range, or a cursor that is not one.
        """
        if status not in _STATUSES:
            raise UsageError(
                f"There is no status {status!r}.", hint=f"Use one of {', '.join(_STATUSES)}."
            )
        if not 1 <= limit <= MAX_LIMIT:
            raise UsageError(f"The limit {limit} is out of range.", hint=f"Use 1 to {MAX_LIMIT}.")
        before_id = read_cursor(cursor)
        async with self._db.connection() as connection:
            rows = _QUERIES.list_notecards(
                connection,
                statuses=_STATUSES[status],
                before_id=before_id,
                limit_rows=limit + 1,  # one more tells whether there is a next page
            )
            cards = tuple([Notecard(**row) async for row in rows])
        return Page(cards, None).keep(limit)

    async def list_made(self, since: datetime, until: datetime) -> tuple[str, ...]:
        """Return the notecards made in ``[since, until)`` as lines, oldest first; 200 at most."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_made(connection, since=since, until=until)
            lines = [
                f"{row['created_at']:%H:%M} {row['creator']}: {row['text']}" async for row in rows
            ]
        return tuple(lines)

    async def complete(self, principal: Principal, notecard_id: int) -> Change:
        """Mark an active notecard as completed.

        Raises:
            NotFound: there is none of that id.
            UsageError: it is archived.
        """
        return await self._move(principal, notecard_id, "completed")

    async def archive(self, principal: Principal, notecard_id: int) -> Change:
        """Put a notecard away: kept, but out of the default view.

        Raises:
            NotFound: there is none of that id.
        """
        return await self._move(principal, notecard_id, "archived")

    async def reopen(self, principal: Principal, notecard_id: int) -> Change:
        """Make a completed or archived notecard active again.

        Raises:
            NotFound: there is none of that id.
        """
        return await self._move(principal, notecard_id, "active")

    async def _move(self, principal: Principal, notecard_id: int, to_status: Status) -> Change:
        """Move it; again when another caller moved it between our two looks, which is legal."""
        _check_id(notecard_id)
        for _try in range(_MOVE_TRIES):
            change = await self._try_move(principal, notecard_id, to_status)
            if change is not None:
                return change
        raise StoreError(
            f"Notecard {notecard_id} is moved by others all the time; nothing was changed.",
            hint="Try again.",
        )

    async def _try_move(
        self, principal: Principal, notecard_id: int, to_status: Status
    ) -> Change | None:
        """Move it, or return None when it could be moved by now and could not a moment ago."""
        async with self._db.transaction() as connection:
            row = await _QUERIES.change_status(
                connection,
                notecard_id=notecard_id,
                from_statuses=_MOVES[to_status],
                to_status=to_status,
                principal=principal.name,
                at=self._clock.now(),
            )
            if row is not None:
                return Change(Notecard(**row), changed=True)
            # A statement of its own sees what a concurrent caller has just committed.
            row = await _QUERIES.fetch_notecard(connection, notecard_id=notecard_id)
        if row is None:
            raise _not_found(notecard_id)
        card = Notecard(**row)
        if card.status == to_status:
            return Change(card, changed=False)
        if card.status in _MOVES[to_status]:
            return None
        raise UsageError(
            f"Notecard {notecard_id} is {card.status} and can not become {to_status}.",
            hint="Reopen it first (reopen_notecard); nothing was changed.",
        )


def _check_id(notecard_id: int) -> None:
    if not 1 <= notecard_id <= MAX_ID:
        raise _not_found(notecard_id)


def _not_found(notecard_id: int) -> NotFound:
    return NotFound(
        f"There is no notecard {notecard_id}; nothing was changed.",
        hint="list_notecards(status='all') shows the ids there are.",
    )
