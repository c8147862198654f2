"""Searching passages by words and by meaning, each alone and in context; every search is logged.

One statement does it all (``store/queries/search.sql``). What it ranks by, and how much each part
counts, was chosen on the LoCoMo conversations leaving one out at a time, so that no part is fitted
to what it is measured on (``scripts/bench retrieval``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

import asyncpg

from .. import logs
from ..clock import Clock
from ..embed.model import write_vector
from ..errors import EmbeddingFailed, UsageError
from ..principals import Principal
from ..store.database import Database
from ..store.text import require_storable
from . import passage_text
from .passage_model import ORIGINS, TIERS, Origin, Tier
from .statements import Searching, load_searching
from .vectors import Vectors

_log = logs.get("memory")

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


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, best first; ``reason`` says why it went by words alone, if so."""

    search_id: int
    mode: Mode
    reason: str
    queries: tuple[str, ...]
    hits: tuple[Hit, ...] = field(default=())


class Search:
    """Searches one memory."""

    def __init__(
        self,
        db: Database,
        vectors: Vectors,
        clock: Clock | None = None,
        *,
        weights: Weights | None = None,
    ) -> None:
        self._db = db
        self._vectors = vectors
        self._clock = clock or Clock()
        self.weights = weights or Weights()
        self._statements: dict[int, Searching] = {}

    async def search(
        self,
        principal: Principal,
        queries: str | Sequence[str],
        *,
        filters: Filters | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Found:
        """Search, and log it.

        Args:
            principal: who asks.
            queries: what is looked for; several are fused into one list.
            filters: where.
            limit: passages, 1 to ``MAX_LIMIT``.

        Raises:
            UsageError: a query is empty, too long or not storable, or a filter makes no sense.
        """
        asked = (queries,) if isinstance(queries, str) else tuple(queries)
        chosen = filters or Filters()
        _check(asked, limit)
        chosen.check()
        statement, vectors, reason = await self._embed(asked)
        mode: Mode = "keyword" if vectors is None else "hybrid"
        async with self._db.transaction() as connection:
            await statement.prepare_search(connection)
            rows = [
                row
                async for row in statement.search_passages(
                    connection,
                    queries=asked,
                    vectors=vectors or [None] * len(asked),
                    wants_time=[passage_text.asks_time(query) for query in asked],
                    weights=self.weights.as_list(),
                    least_near=LEAST_NEAR,
                    limit_rows=limit,
                    include_archived=chosen.include_archived,
                    is_filtered=chosen.narrows,
                    scopes=chosen.scopes or None,
                    tags=chosen.tags or None,
                    entities=[name.lower() for name in chosen.entities] or None,
                    authors=[name.lower() for name in chosen.authors] or None,
                    origins=chosen.origins or None,
                    tier=chosen.tier,
                    thread=chosen.thread,
                    happened_from=chosen.happened_from,
                    happened_to=chosen.happened_to,
                    principal=principal.name,
                    agent_id=principal.agent_id,
                    filters=chosen.as_json(),
                    mode=mode,
                    reason=reason,
                    at=self._clock.now(),
                )
            ]
        hits = tuple(_read(row) for row in rows if row["passage_id"] is not None)
        return Found(rows[0]["search_id"], mode, reason, asked, hits)

    async def _embed(
        self, queries: Sequence[str]
    ) -> tuple[Searching, list[str | None] | None, str]:
        """Return the search by the active model, the vectors, and why there are none if so."""
        try:
            active = await self._vectors.active()
        except EmbeddingFailed as error:
            return self._statement(1, 256), None, str(error)
        name = active.embedder.name
        statement = self._statement(active.id, name.width)
        try:
            rows = await active.embedder.embed(queries, "query")
        except EmbeddingFailed as error:
            _log.warning("memory.search_without_vectors", reason=str(error))
            return statement, None, str(error)
        vectors = [write_vector(row) for row in rows]
        if not any(vectors):
            return statement, None, f"{name.model} knows no word of the query."
        return statement, vectors, ""

    def _statement(self, embedder_id: int, width: int) -> Searching:
        if embedder_id not in self._statements:
            self._statements[embedder_id] = load_searching(embedder_id, width)
        return self._statements[embedder_id]


def _check(queries: Sequence[str], limit: int) -> None:
    if not 1 <= len(queries) <= MAX_QUERIES:
        raise UsageError(
            f"There are {len(queries)} queries.", hint=f"Send 1 to {MAX_QUERIES} in one call."
        )
    for query in queries:
        require_storable(query, "The query", max_chars=MAX_QUERY_CHARS)
    if not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"The limit {limit} is out of range.", hint=f"Use 1 to {MAX_LIMIT}.")


def _read(row: asyncpg.Record) -> Hit:
    return Hit(
        passage_id=row["passage_id"],
        chunk=row["chunk"],
        chunks=row["chunks"],
        is_note=row["is_note"],
        text=row["text"],
        score=row["score"],
        found_by=tuple(row["found_by"]),
        matched=tuple(row["matched"] or ()),
        nearness=row["near"],
        is_by_author=row["is_by"],
        tells_time=row["tells_time"],
        in_context=row["context"] > 0,
        title=row["title"],
        author=row["author"],
        origin=row["origin"],
        source=row["source"],
        thread=row["thread"],
        scope=row["scope"],
        tags=tuple(row["tags"]),
        tier=row["tier"],
        importance=row["importance"],
        happened_at=row["happened_at"],
        principal=row["principal"],
        archived_at=row["archived_at"],
    )
