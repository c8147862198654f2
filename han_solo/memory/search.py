"""Searching passages by words and by meaning, each alone and in context; every search is logged.

One statement does it all (``store/queries/search.sql``). What it ranks by, and how much each part
counts, was chosen on the LoCoMo conversations leaving one out at a time, so that no part is fitted
to what it is measured on (``scripts/bench retrieval``).
"""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from .. import logs
from ..clock import Clock
from ..embed.model import write_vector
from ..errors import EmbeddingFailed, UsageError
from ..principals import Principal
from ..store.database import Database
from ..store.text import require_storable
from . import passage_links, passage_text
from .search_model import (
    DEFAULT_LIMIT,
    LEAST_NEAR,
    MAX_LIMIT,
    MAX_QUERIES,
    MAX_QUERY_CHARS,
    Filters,
    Found,
    Hit,
    Mode,
    Weights,
)
from .statements import Searching, load_searching
from .vectors import Vectors

_log = logs.get("memory")


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
            search_id = rows[0]["search_id"]
            reason = _join(reason, _say_wordless(rows[0]["wordless"], len(asked), mode))
            hits = tuple(_read(row) for row in rows if row["passage_id"] is not None)
            linked, more = (
                await passage_links.expand(
                    connection,
                    search_id,
                    [hit.passage_id for hit in hits],
                    include_archived=chosen.include_archived,
                )
                if any(row["is_linked"] for row in rows)
                else ((), 0)
            )
        return Found(search_id, mode, reason, asked, hits, linked, more)

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


def _say_wordless(numbers: Sequence[int], queries: int, mode: Mode) -> str:
    """Say which queries have nothing for an index of words: their hits are worth less."""
    if not numbers:
        return ""
    if queries == 1:
        which = "The query"
    elif len(numbers) == 1:
        which = f"Query {numbers[0]}"
    else:
        which = f"Each of the queries {', '.join(map(str, numbers))}"
    how = "it went by meaning alone" if mode == "hybrid" else "nothing can be found by it"
    return f"{which} has only signs and words too common to search by, so {how}."


def _join(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


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
