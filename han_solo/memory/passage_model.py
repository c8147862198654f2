"""What a passage is, what may be written of one, and how long its parts may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args

from ..errors import UsageError
from ..store.text import require_storable

Origin = Literal["user_stated", "inferred", "external"]
Tier = Literal["standard", "foundational"]

ORIGINS: Final[tuple[Origin, ...]] = get_args(Origin)
TIERS: Final[tuple[Tier, ...]] = get_args(Tier)

MAX_TEXT_CHARS: Final = 2_000_000
"""A long book. It is found by its chunks, and a reply shows a part of it."""

MAX_NOTE_CHARS: Final = 4_000
"""Longer text is a passage of its own, linked with this one."""

MAX_NAME_CHARS: Final = 200
"""Of titles, authors, sources, threads and scopes."""

MAX_TAGS: Final = 50
MAX_ID: Final = 2**63 - 1
FIRST_YEAR: Final = 100
LAST_YEAR: Final = 9_900
DEFAULT_SCOPE: Final = "general"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A passage that is to be written.

    ``happened_at`` is when it was said or took place (default: now); ``thread`` what it is a part
    of, such as a session, where what is written before and after it is its context;
    ``import_key`` its name where it comes from, under which it is written once only.
    """

    text: str
    title: str = ""
    author: str = ""
    origin: Origin = "inferred"
    source: str = ""
    thread: str | None = None
    scope: str = DEFAULT_SCOPE
    tags: tuple[str, ...] = ()
    tier: Tier = "standard"
    importance: float = 0.5
    happened_at: datetime | None = None
    import_key: str | None = None

    def check(self) -> None:
        """Raise ``UsageError`` for what can not be written, by name and place."""
        require_storable(self.text, "The passage's text", max_chars=MAX_TEXT_CHARS)
        for name in ("title", "author", "source"):
            value = getattr(self, name)
            require_storable(value, f"The passage's {name}", max_chars=MAX_NAME_CHARS, min_chars=0)
        for name in ("thread", "scope", "import_key"):
            value = getattr(self, name)
            if value is not None:
                require_storable(value, f"The passage's {name}", max_chars=MAX_NAME_CHARS)
        check_tags(self.tags)
        _check_choice("origin", self.origin, ORIGINS)
        _check_choice("tier", self.tier, TIERS)
        if not 0 <= self.importance <= 1:
            raise UsageError(
                f"The importance {self.importance} is out of range.",
                hint="Use 0 (of no importance) to 1; nothing was written.",
            )
        if self.happened_at is not None and self.happened_at.tzinfo is None:
            raise UsageError(
                "The passage's time has no zone.",
                hint="Give it with an offset, such as 2026-05-08T13:56:00+02:00 or ...Z.",
            )
        if self.happened_at is not None:
            check_year(self.happened_at, "the passage's time")


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who wrote something, and when, as another memory had it."""

    principal: str
    agent_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class KeptNote:
    """A note that is imported together with its passage."""

    text: str
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A passage that is imported, and what another memory had on it beside its text.

    Without a ``provenance`` it is written by whoever imports it, now. ``archived`` is who put it
    away and when.
    """

    draft: Draft
    provenance: Provenance | None = None
    notes: tuple[KeptNote, ...] = ()
    archived: Provenance | None = None

    @property
    def has_more(self) -> bool:
        return bool(self.provenance or self.notes or self.archived)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage as it is stored. Times are aware UTC."""

    id: int
    text: str
    title: str
    author: str
    origin: Origin
    source: str
    thread: str | None
    scope: str
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    tier: Tier
    importance: float
    happened_at: datetime
    created_at: datetime
    principal: str
    agent_id: str | None
    import_key: str | None
    archived_at: datetime | None

    @classmethod
    def of(cls, row: Any) -> Passage:
        """Make it of a row."""
        values = dict(row)
        return cls(**{**values, "tags": tuple(row["tags"]), "entities": tuple(row["entities"])})


@dataclass(frozen=True, slots=True)
class Note:
    """What was added to a passage later."""

    id: int
    passage_id: int
    text: str
    principal: str
    agent_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Linked:
    """A passage that another one is linked with; ``from_id`` and ``to_id`` give the direction."""

    passage_id: int
    kind: str
    note: str
    from_id: int
    to_id: int
    beginning: str
    author: str
    is_archived: bool
    principal: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Whole:
    """A passage with all that was added to it, and how often it was found or read."""

    passage: Passage
    notes: tuple[Note, ...]
    links: tuple[Linked, ...]
    access_count: int
    accessed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a write.

    ``chunks`` is how many pieces search finds it by. ``pending`` says why it has no vector yet, and
    so is found by its words alone until it is embedded; None when it has.
    """

    passage: Passage
    chunks: int
    pending: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """What a change came to; ``changed`` is False when it was so already."""

    passage: Passage
    changed: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """What many drafts came to: ids of the new ones, and how many were there already."""

    passage_ids: tuple[int, ...]
    skipped: int
    pending: str | None = field(default=None)


def check_tags(tags: tuple[str, ...]) -> None:
    """Raise ``UsageError`` for tags that can not be kept."""
    if len(tags) > MAX_TAGS:
        raise UsageError(
            f"There are {len(tags)} tags; at most {MAX_TAGS} are kept.",
            hint="Keep those that someone would look for; nothing was written.",
        )
    for tag in tags:
        require_storable(tag, "A tag", max_chars=MAX_NAME_CHARS)


def parse_time(text: str | None, field: str) -> datetime | None:
    """Read an ISO date or time; one without a zone is UTC.

    Raises:
        UsageError: it is none.
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"{text[:40]!r} is no time for {field}.",
            hint="Write it as 2026-05-08 or 2026-05-08T13:56:00+02:00.",
        ) from error
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    check_year(aware, field)
    return aware


def check_year(moment: datetime, field: str) -> None:
    """Refuse the ends of the calendar, which have no time in every zone.

    Raises:
        UsageError: the year is out of range.
    """
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise UsageError(
            f"The year {moment.year} is out of range for {field}.",
            hint=f"Use {FIRST_YEAR} to {LAST_YEAR}.",
        )


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"There is no {name} {value!r}.", hint=f"Use one of {', '.join(choices)}.")
