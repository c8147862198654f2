"""The MRI: what of the memory is never found, what is found the most, what it can not answer.

It reads the access log of the last days. It changes nothing and archives nothing: whoever reads it
decides whether a passage nobody finds is written badly, or is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

import asyncpg
import msgspec

from ..errors import UsageError
from ..store.database import Connection, Database
from ..store.queries import load_queries

DEFAULT_DAYS: Final = 30
MAX_DAYS: Final = 3_650
EXAMPLES: Final = 10
"""Shown of each kind; the counts are of all."""

LONGEST_S: Final = 120.0
"""It reads every search of a long time."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Day:
    """The searches of one day; ``empty`` ones found nothing."""

    day: date
    searches: int
    empty: int


@dataclass(frozen=True, slots=True)
class TimesFound:
    """How many passages were found so many times: ``first_times`` until the next one's."""

    first_times: int
    passages: int


@dataclass(frozen=True, slots=True)
class ScopeShare:
    """A scope: its passages, those never shown, and how often one of it was found."""

    scope: str
    passages: int
    dead: int
    times: int


@dataclass(frozen=True, slots=True)
class DeadPassage:
    """No search showed it and nobody read it."""

    id: int
    beginning: str
    scope: str
    tier: str
    importance: float
    created_at: datetime


@dataclass(frozen=True, slots=True)
class UnhelpfulPassage:
    """It was shown and said to be of no use each time, at least twice, and not read."""

    id: int
    beginning: str
    times: int
    not_used: int


@dataclass(frozen=True, slots=True)
class HotPassage:
    """It is found the most."""

    id: int
    beginning: str
    times: int
    used: int
    not_used: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class BlindSpot:
    """A question that found nothing, or (``found_nothing`` is False) nothing of use, to the last.

    ``filters`` are those it was asked with, as ``Filters.as_json`` writes them: another set of them
    is another question.
    """

    question: str
    filters: dict[str, Any]
    times: int
    last_at: datetime
    found_nothing: bool

    def where(self) -> str:
        """Say in words where it was asked to look; empty if everywhere."""
        return "; ".join(
            f"{name.replace('_', ' ')} {', '.join(value) if isinstance(value, list) else value}"
            for name, value in self.filters.items()
            if value is not True
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mri:
    """The memory from ``since`` until now, archived passages left out.

    ``judged`` searches are those that somebody said the use of (``log_access``), ``of_use`` those
    of them that showed at least one passage of use. Lists have at most ``EXAMPLES`` of each.
    """

    since: datetime
    until: datetime
    passages: int
    foundational: int
    archived: int
    new: int
    searches: int
    empty: int
    by_words_alone: int
    judged: int
    of_use: int
    dead: int
    unhelpful: int
    blind: int
    times_found: tuple[TimesFound, ...]
    days: tuple[Day, ...]
    scopes: tuple[ScopeShare, ...]
    dead_passages: tuple[DeadPassage, ...]
    unhelpful_passages: tuple[UnhelpfulPassage, ...]
    hot_passages: tuple[HotPassage, ...]
    blind_spots: tuple[BlindSpot, ...]


class _Queries(Protocol):
    async def look_through(
        self, conn: Connection, *, since: datetime, until: datetime, zone: str, examples: int
    ) -> asyncpg.Record: ...


_QUERIES: Final = load_queries("mri", _Queries)


async def look_through(db: Database, now: datetime, *, days: int, zone: str) -> Mri:
    """Look through the access log of the last days.

    Args:
        db: the memory.
        now: until when.
        days: 1 to ``MAX_DAYS``.
        zone: the IANA time zone that days are counted in.

    Raises:
        UsageError: the number of days is out of range.
    """
    if not 1 <= days <= MAX_DAYS:
        raise UsageError(f"{days} days is out of range.", hint=f"Use 1 to {MAX_DAYS:,}.")
    since = now - timedelta(days=days)
    async with db.direct(statement_timeout_s=LONGEST_S) as connection:
        row = await _QUERIES.look_through(
            connection, since=since, until=now, zone=zone, examples=EXAMPLES
        )
    values: dict[str, Any] = dict(row)
    return Mri(
        **{
            **values,
            "since": since,
            "until": now,
            "times_found": tuple(TimesFound(*pair) for pair in values["times_found"]),
            "days": tuple(
                Day(date.fromisoformat(day), searches, empty)
                for day, searches, empty in values["days"]
            ),
            "scopes": _list(values["scopes"], ScopeShare),
            "dead_passages": _list(values["dead_passages"], DeadPassage),
            "unhelpful_passages": _list(values["unhelpful_passages"], UnhelpfulPassage),
            "hot_passages": _list(values["hot_passages"], HotPassage),
            "blind_spots": _list(values["blind_spots"], BlindSpot),
        }
    )


def _list(found: list[dict[str, Any]] | None, kind: type[T]) -> tuple[T, ...]:
    return tuple(msgspec.convert(each, kind) for each in found or ())
