"""The passage tools: write, search, read, add to, link, promote, put away and bring back."""

from __future__ import annotations

from typing import Literal

from han_solo import MemoryContext, tool
from han_solo.errors import UsageError
from han_solo.memory.passage_model import Draft, parse_time
from han_solo.memory.search_model import Filters

from ._fitting import ABOUT, keep_what_fits
from ._passage_search import ShownSearch, reply_search
from ._passages import (
    Done,
    Links,
    OneNote,
    OnePassage,
    WholePassage,
    show_change,
    show_link,
    show_note,
    show_whole,
    show_written,
)


@tool(effect="write")
async def passage_insert(
    ctx: MemoryContext,
    text: str,
    author: str = "",
    origin: Literal["user_stated", "inferred", "external"] = "inferred",
    *,
    title: str = "",
    tags: tuple[str, ...] = (),
    importance: float = 0.5,
    scope: str = "general",
    source: str = "",
    thread: str | None = None,
    happened_at: str | None = None,
) -> OnePassage:
    """Remember something in prose, to be found by search later.

    Use it for what happened, what was said, how something works. Write it so that it is understood
    without the conversation: names rather than "he", dates rather than "yesterday". Do not use it
    for what must always be in view (a core block) nor for a task (a notecard).

    Args:
        text: what to remember, 1 to 2,000,000 characters; long text is split and found by its
            parts. It never changes; enrich_passage adds to it.
        author: whose words or knowledge it is, such as scott; searches that name them find it.
        origin: user_stated if a person said so, inferred if you concluded it, external if it comes
            from a document or another system.
        title: a short title, at most 200 characters.
        tags: words to filter by, at most 50.
        importance: 0 to 1.
        scope: the area it belongs to, to search in later, such as work or family.
        source: where it is from: a file, a URL, a session; at most 200 characters.
        thread: what it is a part of, such as a session's name. Passages of one thread, written in
            order, are one another's context in search.
        happened_at: when it was said or took place, ISO 8601 (UTC without an offset); now if left
            out.
    """
    draft = Draft(
        text=text,
        title=title,
        author=author,
        origin=origin,
        source=source,
        thread=thread,
        scope=scope,
        tags=tags,
        importance=importance,
        happened_at=parse_time(happened_at, "happened_at"),
    )
    return show_written(await ctx.passages.insert(ctx.principal, draft))


@tool(effect="read")
async def passage_search(
    ctx: MemoryContext,
    query: str,
    more_queries: tuple[str, ...] = (),
    limit: int = 10,
    *,
    scope: str | None = None,
    tags: tuple[str, ...] = (),
    entities: tuple[str, ...] = (),
    author: str | None = None,
    origin: Literal["user_stated", "inferred", "external"] | None = None,
    tier: Literal["standard", "foundational"] | None = None,
    thread: str | None = None,
    happened_from: str | None = None,
    happened_to: str | None = None,
    include_archived: bool = False,
) -> ShownSearch:
    """Search what is remembered, by words and by meaning at once.

    Ask as you would ask a person, with the names and words that matter. Send the parts of a
    question as more_queries rather than searching several times. Each hit says why it is there.
    Keep search_id if you want to tell later whether it helped.

    Args:
        query: what is looked for, 1 to 10,000 characters.
        more_queries: up to 7 more; all are fused, and found_by says which found a hit, from 1.
        limit: how many passages, 1 to 20.
        scope: only in this area.
        tags: only what has all of these tags.
        entities: only what names one of these people, places, files or tickets.
        author: only this author's words.
        origin: only what came so.
        tier: only this tier.
        thread: only this thread.
        happened_from: only from this time on, ISO 8601.
        happened_to: only before this time, ISO 8601.
        include_archived: also what was put away.
    """
    if not 1 <= limit <= 20:  # noqa: PLR2004 - more would not fit in a reply
        raise UsageError(f"The limit {limit} is out of range.", hint="Use 1 to 20.")
    filters = Filters(
        scopes=(scope,) if scope is not None else (),
        tags=tags,
        entities=entities,
        authors=(author,) if author is not None else (),
        origins=(origin,) if origin is not None else (),
        tier=tier,
        thread=thread,
        happened_from=parse_time(happened_from, "happened_from"),
        happened_to=parse_time(happened_to, "happened_to"),
        include_archived=include_archived,
    )
    queries = (query, *more_queries)
    return await reply_search(
        ctx, await ctx.passages.search(ctx.principal, queries, filters=filters, limit=limit)
    )


@tool(effect="read")
async def read_passage(ctx: MemoryContext, passage_id: int, offset_chars: int = 0) -> WholePassage:
    """Read one passage whole, with its notes, its links, and how often it was found.

    Args:
        passage_id: its id, as passage_search shows it.
        offset_chars: where to begin in a long text: next_offset_chars of the reply before.
    """
    if offset_chars < 0:
        raise UsageError(f"The offset {offset_chars} is out of range.", hint="Use 0 or more.")
    return show_whole(await ctx.passages.get(ctx.principal, passage_id), offset_chars)


@tool(effect="write")
async def enrich_passage(ctx: MemoryContext, passage_id: int, note: str) -> OneNote:
    """Add a dated note to a passage: what came of it, what was wrong, what is known now.

    The passage's own text stays as it is; search finds the passage by its notes too.

    Args:
        passage_id: the passage's id.
        note: what to add, 1 to 4,000 characters; longer text is a passage of its own, to be linked.
    """
    found = await ctx.passages.enrich(ctx.principal, passage_id, note)
    return OneNote(f"Note {found.id} was added to passage {passage_id}.", show_note(found))


@tool(effect="write")
async def promote_passage(ctx: MemoryContext, passage_id: int) -> OnePassage:
    """Make a passage foundational: it never fades and can never be put away again.

    Use it for the few things that make up who you and your people are. It can not be undone.

    Args:
        passage_id: the passage's id; it must not be archived.
    """
    return show_change(await ctx.passages.promote(passage_id), "foundational")


@tool(effect="write")
async def link_passages(
    ctx: MemoryContext, from_id: int, to_id: int, kind: str = "related", note: str = ""
) -> Done:
    """Link two passages, so that whoever finds one is shown the other.

    Args:
        from_id: the passage that the link starts at.
        to_id: the passage that it leads to.
        kind: one word in lower case, such as related, follows, supports, contradicts, corrects.
        note: why, at most 500 characters.
    """
    made = await ctx.passages.link(ctx.principal, from_id, to_id, kind=kind, note=note)
    if made:
        return Done(f"Passage {from_id} is now linked to {to_id} ({kind}).", changed=True)
    return Done(
        f"Passage {from_id} was already linked to {to_id} ({kind}); nothing was changed.",
        changed=False,
    )


@tool(effect="write")
async def unlink_passages(
    ctx: MemoryContext, from_id: int, to_id: int, kind: str | None = None
) -> Done:
    """Take away the links between two passages, in both directions. The passages stay.

    Args:
        from_id: one of the two.
        to_id: the other.
        kind: only links of this kind; all of them if left out.
    """
    count = await ctx.passages.unlink(from_id, to_id, kind=kind)
    if not count:
        return Done(
            f"There is no such link between {from_id} and {to_id}; nothing was changed.",
            changed=False,
        )
    return Done(
        f"{count} link{'' if count == 1 else 's'} between {from_id} and {to_id} "
        f"{'was' if count == 1 else 'were'} taken away.",
        changed=True,
    )


@tool(effect="read")
async def linked_passages(ctx: MemoryContext, passage_id: int) -> Links:
    """List what a passage is linked with, in both directions.

    Args:
        passage_id: the passage's id.
    """
    links = await ctx.passages.linked(passage_id)
    shown = keep_what_fits([show_link(link, passage_id) for link in links])
    rest = f"; {len(links) - len(shown)} more did not fit" if len(shown) < len(links) else ""
    count = f"{len(links) or 'no'} link{'' if len(links) == 1 else 's'}"
    return Links(f"Passage {passage_id} has {count}{rest}.", ABOUT, shown)


@tool(effect="write")
async def archive_passage(ctx: MemoryContext, passage_id: int) -> OnePassage:
    """Put a passage away: it is kept, but no search finds it until it is restored.

    Use it for what is outdated or wrong. A foundational passage can not be put away.

    Args:
        passage_id: the passage's id.
    """
    return show_change(await ctx.passages.archive(ctx.principal, passage_id), "archived")


@tool(effect="write")
async def restore_passage(ctx: MemoryContext, passage_id: int) -> OnePassage:
    """Bring a passage that was put away back into search.

    Args:
        passage_id: the passage's id; passage_search with include_archived finds it.
    """
    return show_change(await ctx.passages.restore(passage_id), "in search")
