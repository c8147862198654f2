"""Passages under the names that other clients know, which are Letta's own.

Not in the agent's own set: Letta overwrites tools of its built-in names at every start. The agent
has ``passage_insert`` and ``passage_search``.
"""

from __future__ import annotations

from han_solo import MemoryContext, tool
from han_solo.memory.passage_model import Draft, parse_time
from han_solo.memory.search_model import Filters

from ._passage_search import ShownSearch, reply_search
from ._passages import OnePassage, show_written


@tool(effect="write", audience="client")
async def archival_memory_insert(
    ctx: MemoryContext, content: str, tags: tuple[str, ...] = ()
) -> OnePassage:
    """Remember something in the agent's archival memory, to be found by search later.

    Args:
        content: what to remember, understandable by itself; 1 to 2,000,000 characters.
        tags: words to filter by, at most 50.
    """
    draft = Draft(text=content, tags=tags, author=ctx.principal.name, origin="external")
    return show_written(await ctx.passages.insert(ctx.principal, draft))


@tool(effect="read", audience="client")
async def archival_memory_search(
    ctx: MemoryContext,
    query: str,
    tags: tuple[str, ...] = (),
    *,
    top_k: int = 10,
    start_datetime: str | None = None,
    end_datetime: str | None = None,
) -> ShownSearch:
    """Search the agent's archival memory by words and by meaning.

    Args:
        query: what is looked for, 1 to 10,000 characters.
        tags: only what has all of these tags.
        top_k: how many passages, 1 to 100; fewer are shown when the reply would grow too long.
        start_datetime: only from this time on, ISO 8601.
        end_datetime: only before this time, ISO 8601.
    """
    filters = Filters(
        tags=tags,
        happened_from=parse_time(start_datetime, "start_datetime"),
        happened_to=parse_time(end_datetime, "end_datetime"),
    )
    return await reply_search(
        ctx, await ctx.passages.search(ctx.principal, query, filters=filters, limit=top_k)
    )
