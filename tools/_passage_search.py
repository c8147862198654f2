"""How the finds of a search are shown: each as data, with why it is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._fitting import ABOUT, MAX_ITEMS_CHARS, keep_what_fits, show_time, size

if TYPE_CHECKING:
    from han_solo import MemoryContext
    from han_solo.memory.search_model import Found, Hit, LinkedHit


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A passage that was found; ``text`` is the chunk of it that was.

    ``score`` compares hits of this search only; ``found_by`` numbers the queries that found it.
    """

    passage_id: int
    chunk: str
    score: float
    why: str
    found_by: tuple[int, ...]
    author: str
    origin: str
    written_by: str
    source: str
    scope: str
    tags: tuple[str, ...]
    tier: str
    is_archived: bool
    happened_at: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownLinkedHit:
    """A passage that hit ``via`` is linked with; ``direction`` is seen from that hit."""

    passage_id: int
    via: int
    kind: str
    direction: str
    note: str
    author: str
    origin: str
    written_by: str
    source: str
    scope: str
    tags: tuple[str, ...]
    tier: str
    happened_at: str
    title: str
    text: str
    text_chars: int


@dataclass(frozen=True, slots=True)
class ShownSearch:
    """What a search found, best first, and what that is linked with.

    ``mode`` is hybrid (words and meaning) or keyword (words alone); ``reason`` says what the search
    had to do without, and why.
    """

    summary: str
    about: str
    search_id: int
    mode: str
    reason: str
    queries: tuple[str, ...]
    hits: tuple[ShownHit, ...]
    linked: tuple[ShownLinkedHit, ...]


async def reply_search(ctx: MemoryContext, found: Found) -> ShownSearch:
    """Show a search, and have its log name what the reply had room for."""
    shown = show_search(found)
    if (len(shown.hits), len(shown.linked)) != (len(found.hits), len(found.linked)):
        await ctx.passages.note_shown(
            found.search_id,
            [hit.passage_id for hit in shown.hits],
            [hit.passage_id for hit in shown.linked],
        )
    return shown


def show_search(found: Found) -> ShownSearch:
    hits = [_hit(hit) for hit in found.hits]
    kept = keep_what_fits(hits)
    count = f"{len(hits) or 'no'} passage{'' if len(hits) == 1 else 's'}"
    left_out = len(hits) - len(kept)
    rest = f"; the last {left_out} did not fit: ask for fewer" if left_out else ""
    room = MAX_ITEMS_CHARS - sum(map(size, kept))
    linked = keep_what_fits([_linked_hit(each) for each in found.linked], room)
    if linked:
        rest += f"; {len(linked)} more that they are linked with"
    unseen = found.more_linked + len(found.linked) - len(linked)
    if unseen:
        rest += f" ({unseen} links not shown: linked_passages lists them)"
    how = "by words and meaning" if found.mode == "hybrid" else "by words alone"
    return ShownSearch(
        summary=f"{count}, found {how}{rest}.",
        about=ABOUT,
        search_id=found.search_id,
        mode=found.mode,
        reason=found.reason,
        # A long query is known to who asked it.
        queries=tuple(query[:200] for query in found.queries),
        hits=kept,
        linked=linked,
    )


def _hit(hit: Hit) -> ShownHit:
    return ShownHit(
        passage_id=hit.passage_id,
        chunk="note" if hit.is_note else f"{hit.chunk} of {hit.chunks}",
        score=round(hit.score, 3),
        why=hit.why(),
        found_by=hit.found_by,
        author=hit.author,
        origin=hit.origin,
        written_by=hit.principal,
        source=hit.source,
        scope=hit.scope,
        tags=hit.tags[:20],
        tier=hit.tier,
        is_archived=hit.archived_at is not None,
        happened_at=show_time(hit.happened_at),
        title=hit.title,
        text=hit.text,
    )


def _linked_hit(hit: LinkedHit) -> ShownLinkedHit:
    return ShownLinkedHit(
        passage_id=hit.passage_id,
        via=hit.via_id,
        kind=hit.kind,
        direction="to" if hit.is_to else "from",
        note=hit.link_note,
        author=hit.author,
        origin=hit.origin,
        written_by=hit.principal,
        source=hit.source,
        scope=hit.scope,
        tags=hit.tags[:20],
        tier=hit.tier,
        happened_at=show_time(hit.happened_at),
        title=hit.title,
        text=hit.beginning,
        text_chars=hit.text_chars,
    )
