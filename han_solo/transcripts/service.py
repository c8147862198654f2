"""Search and read transcripts: what the tools, the commands and the page ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ..clock import Clock
from ..errors import NotFound, UsageError
from ..store.database import Database
from .queries import QUERIES

DEFAULT_DAYS: Final = 45
"""How far back a search looks unless told otherwise; older records stay and can be asked for."""

MAX_QUERY_CHARS: Final = 1_000
MAX_ROWS: Final = 200


@dataclass(frozen=True, slots=True)
class Hit:
    """One record that was found; ``snippet`` marks what matched with two stars."""

    id: int
    session_id: str
    kind: str
    at: datetime | None
    project: str
    title: str | None
    snippet: str


@dataclass(frozen=True, slots=True)
class Session:
    """One session; a side agent's has the ``parent_id`` of the one it worked for."""

    session_id: str
    parent_id: str | None
    agent_id: str | None
    project: str
    title: str | None
    first_at: datetime | None
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of a session, in the order of its file."""

    id: int
    kind: str
    subtype: str
    at: datetime | None
    text: str
    model: str | None


@dataclass(frozen=True, slots=True)
class Totals:
    """What is there."""

    files: int
    sessions: int
    last_read_at: datetime | None
    input_tokens: int
    output_tokens: int
    kinds: Mapping[str, int]
    damage: Mapping[str, int]


class Transcripts:
    """All transcripts in the database, of every machine."""

    def __init__(self, db: Database, clock: Clock | None = None) -> None:
        self._db = db
        self._clock = clock or Clock()

    async def search(
        self,
        query: str,
        *,
        days: int | None = DEFAULT_DAYS,
        project: str | None = None,
        session_id: str | None = None,
        limit: int = 20,
    ) -> tuple[Hit, ...]:
        """Find what was said, the best first.

        Args:
            query: words; ``"a phrase"``, ``or`` and ``-without`` are understood.
            days: how far back; None for everything.
            project: part of the project's path.
            session_id: one session.
            limit: hits, at most.

        Raises:
            UsageError: there is nothing to search for.
        """
        words = query.replace("\x00", "").strip()
        if not any(character.isalnum() for character in words):
            raise UsageError(
                "The query has no word in it.", hint="Give a word or two that were said."
            )
        if len(words) > MAX_QUERY_CHARS:
            raise UsageError(
                f"The query has {len(words):,} characters; at most {MAX_QUERY_CHARS:,} are taken.",
                hint="Give the words that matter.",
            )
        async with self._db.connection() as connection:
            rows = QUERIES.search(
                connection,
                query=words,
                since=None if days is None else self._clock.now() - timedelta(days=days),
                project=project,
                session_id=session_id,
                limit_rows=max(1, min(limit, MAX_ROWS)),
            )
            return tuple([Hit(**dict(row)) async for row in rows])

    async def find_session(self, session_id: str) -> Session:
        """Return a session by its id, or by the beginning of it.

        Raises:
            NotFound: there is none.
        """
        async with self._db.connection() as connection:
            row = await QUERIES.find_session(connection, session_id=session_id)
        if row is None or not session_id:
            raise NotFound(
                f"There is no session {session_id!r}.",
                hint="A search names the sessions of its hits.",
            )
        return Session(**dict(row))

    async def read(
        self, session_id: str, *, after_id: int = 0, limit: int = 100
    ) -> tuple[Entry, ...]:
        """Return what was said and done in a session, from the record after ``after_id`` on."""
        async with self._db.connection() as connection:
            rows = QUERIES.read_session(
                connection, session_id=session_id, after_id=after_id, limit_rows=limit
            )
            return tuple([Entry(**dict(row)) async for row in rows])

    async def list_sessions(
        self, *, days: int | None = DEFAULT_DAYS, project: str | None = None, limit: int = 20
    ) -> tuple[Session, ...]:
        """Return sessions, the newest first."""
        async with self._db.connection() as connection:
            rows = QUERIES.list_sessions(
                connection,
                since=None if days is None else self._clock.now() - timedelta(days=days),
                project=project,
                limit_rows=limit,
            )
            return tuple([Session(**dict(row)) async for row in rows])

    async def describe(self) -> Totals:
        """Sum up what is there."""
        async with self._db.connection() as connection:
            totals = await QUERIES.fetch_totals(connection)
            kinds = {row["kind"]: row["count"] async for row in QUERIES.count_kinds(connection)}
            damage = {row["kind"]: row["count"] async for row in QUERIES.count_damage(connection)}
        return Totals(**dict(totals), kinds=kinds, damage=damage)
