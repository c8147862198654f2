"""What a search is asked, what it ranks by, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from ..errors import UsageError
from ..store.text import require_storable
from .passage_model import ORIGINS, TIERS, Origin, Tier

MAX_QUERIES: Final = 8
MAX_QUERY_CHARS: Final = 10_000
MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 10

LEAST_NEAR: Final = 0.15
"""A hit that shares no word with the query has at least this cosine; below is noise."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part of a score counts. The first four are relative to the query's best."""

    words: float = 0.4
    words_in_context: float = 0.8
    meaning: float = 0.4
    meaning_in_context: float = 0.4
    author: float = 0.6
    """The query names whose words the passage is."""
    asks: float = -0.2
    """The passage ends in a question: it is about the matter and does not tell."""
    tells_time: float = 0.5
    """The query asks for a time and the passage tells one."""

    def as_list(self) -> list[float]:
        return [
            self.words,
            self.words_in_context,
            self.meaning,
            self.meaning_in_context,
            self.author,
            self.asks,
            self.tells_time,
        ]


Mode = Literal["hybrid", "keyword"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What is searched. None, or nothing given, is everything that is not archived."""

    scopes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """All of them."""
    entities: tuple[str, ...] = ()
    """Any of them."""
    authors: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()
    tier: Tier | None = None
    thread: str | None = None
    happened_from: datetime | None = None
    happened_to: datetime | None = None
    include_archived: bool = False

    @property
    def narrows(self) -> bool:
        return bool(
            self.scopes
            or self.tags
            or self.entities
            or self.authors
            or self.origins
            or self.tier
            or self.thread
            or self.happened_from
            or self.happened_to
        )

    def check(self) -> None:
        for name in ("scopes", "tags", "entities", "authors"):
            for value in getattr(self, name):
                require_storable(value, f"One of the {name} to search in", max_chars=200)
        if self.thread is not None:
            require_storable(self.thread, "The thread to search in", max_chars=200)
        if self.tier is not None and self.tier not in TIERS:
            raise UsageError(f"There is no tier {self.tier!r}.", hint=f"Use {' or '.join(TIERS)}.")
        for origin in self.origins:
            if origin not in ORIGINS:
                raise UsageError(
                    f"There is no origin {origin!r}.", hint=f"Use one of {', '.join(ORIGINS)}."
                )
        for moment in (self.happened_from, self.happened_to):
            if moment is not None and moment.tzinfo is None:
                raise UsageError(
                    "A time to search from or to has no zone.",
                    hint="Give it with an offset, such as 2026-05-08T00:00:00Z.",
                )

        if self.happened_from and self.happened_to and self.happened_from >= self.happened_to:
            raise UsageError(
                f"No time is from {self.happened_from.isoformat()} on and before "
                f"{self.happened_to.isoformat()}.",
                hint="Give an end that is later than the beginning; nothing was searched.",
            )

    def as_json(self) -> dict[str, Any]:
        """Return what was asked for, for the log."""
        found: dict[str, Any] = {}
        for name in ("scopes", "tags", "entities", "authors", "origins"):
            if getattr(self, name):
                found[name] = list(getattr(self, name))
        for name in ("tier", "thread"):
            if getattr(self, name):
                found[name] = getattr(self, name)
        for name in ("happened_from", "happened_to"):
            if getattr(self, name):
                found[name] = getattr(self, name).isoformat()
        if self.include_archived:
            found["include_archived"] = True
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage that was found, by its best chunk.

    ``score`` compares hits of one search only. ``found_by`` numbers the queries that found it, from
    1, best first. ``matched`` are the words it shares with the best one, as they are indexed;
    ``nearness`` is the cosine of the two vectors.
    """

    passage_id: int
    chunk: int
    chunks: int
    is_note: bool
    text: str
    score: float
    found_by: tuple[int, ...]
    matched: tuple[str, ...]
    nearness: float
    is_by_author: bool
    tells_time: bool
    in_context: bool
    title: str
    author: str
    origin: Origin
    source: str
    thread: str | None
    scope: str
    tags: tuple[str, ...]
    tier: Tier
    importance: float
    happened_at: datetime
    principal: str
    archived_at: datetime | None

    def why(self) -> str:
        """Say in words why it is there."""
        reasons = []
        if self.matched:
            reasons.append(f"has {', '.join(self.matched[:8])}")
        elif self.in_context:
            reasons.append("stands beside what has the words")
        if self.is_by_author:
            reasons.append(f"is by {self.author}")
        if self.tells_time:
            reasons.append("tells a time")
        if self.nearness >= LEAST_NEAR:
            reasons.append(f"is near in meaning ({self.nearness:.2f})")
        return "; ".join(reasons) or "is the nearest there is"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedHit:
    """A passage that is shown because a hit (``via_id``) is linked with it.

    ``is_to``: the link leads from the hit to it. ``beginning`` is the first of its ``text_chars``
    characters.
    """

    passage_id: int
    via_id: int
    kind: str
    link_note: str
    is_to: bool
    beginning: str
    text_chars: int
    title: str
    author: str
    origin: Origin
    source: str
    scope: str
    tags: tuple[str, ...]
    tier: Tier
    happened_at: datetime
    principal: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, best first; ``reason`` says what it had to do without, and why.

    ``linked`` is what the hits are linked with, beside them; ``more_linked`` how many more there
    are.
    """

    search_id: int
    mode: Mode
    reason: str
    queries: tuple[str, ...]
    hits: tuple[Hit, ...] = field(default=())
    linked: tuple[LinkedHit, ...] = field(default=())
    more_linked: int = 0
