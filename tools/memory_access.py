"""What searches were good for, and what they tell of the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from han_solo import MemoryContext, tool

from ._fitting import ABOUT, show_time

if TYPE_CHECKING:
    from han_solo.memory.mri import Mri


@dataclass(frozen=True, slots=True)
class LoggedAccess:
    """What was logged; ``not_used_ids`` is what else the search showed."""

    done: str
    search_id: int
    used_ids: tuple[int, ...]
    not_used_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShownDead:
    """A passage that no search showed and nobody read."""

    passage_id: int
    scope: str
    tier: str
    importance: float
    created_at: str
    beginning: str


@dataclass(frozen=True, slots=True)
class ShownFound:
    """A passage, how often it was found, and how often it was said to be of use or of none."""

    passage_id: int
    times: int
    used: int
    not_used: int
    beginning: str


@dataclass(frozen=True, slots=True)
class ShownBlindSpot:
    """A question, where it was asked, how often, and whether it found nothing or nothing of use."""

    question: str
    where: str
    times: int
    last_at: str
    what: str


@dataclass(frozen=True, slots=True)
class ShownScope:
    """A scope, its passages, those of them never shown, and how often one of it was found."""

    scope: str
    passages: int
    dead: int
    times: int


@dataclass(frozen=True, slots=True)
class ShownMri:
    """The memory as its searches of the last days show it; each list has ten at most.

    ``judged`` searches are those that log_memory_access was called for, ``of_use`` those of them
    where something helped.
    """

    summary: str
    about: str
    since: str
    passages: int
    foundational: int
    archived: int
    searches: int
    empty: int
    by_words_alone: int
    judged: int
    of_use: int
    dead: int
    unhelpful: int
    blind: int
    blind_spots: tuple[ShownBlindSpot, ...]
    dead_passages: tuple[ShownDead, ...]
    unhelpful_passages: tuple[ShownFound, ...]
    hot_passages: tuple[ShownFound, ...]
    scopes: tuple[ShownScope, ...]


@tool(effect="write")
async def log_memory_access(
    ctx: MemoryContext, search_id: int, used_ids: tuple[int, ...] = (), note: str = ""
) -> LoggedAccess:
    """Say what a search was good for, once you have answered.

    Searches log themselves; this adds which of their passages you used, so that memory_mri can tell
    what helps from what is only found. Call it once after each passage_search whose result
    mattered, with used_ids empty when nothing helped. Calling it again for the same search replaces
    what you said.

    Args:
        search_id: from the reply of passage_search.
        used_ids: the passage ids of that reply that went into your answer; the others count as of
            no use.
        note: what was missing or wrong, at most 500 characters.
    """
    found = await ctx.passages.log_access(ctx.principal, search_id, used_ids, note=note)
    others = tuple(number for number in found.shown_ids if number not in found.used_ids)
    if not found.shown_ids:
        done = f"Search {search_id} found nothing, which is logged already."
    else:
        done = (
            f"Search {search_id}: {len(found.used_ids)} of its passages of use, "
            f"{len(others)} of no use; logged."
        )
    return LoggedAccess(done, search_id, found.used_ids, others)


@tool(effect="read")
async def memory_mri(ctx: MemoryContext, days: int = 30) -> ShownMri:
    """Look through the memory for dead, hot and blind spots.

    Dead is what no search ever showed, hot what is found the most, blind the questions that found
    nothing or nothing of use. Use it now and then to mend the memory: write what a blind spot lacks
    (passage_insert), add the words people ask by to a dead passage (enrich_passage), put away what
    never helps (archive_passage). It changes nothing itself.

    Args:
        days: how many days back, 1 to 3,650.
    """
    return _show(await ctx.passages.mri(days=days), days)


def _show(found: Mri, days: int) -> ShownMri:
    return ShownMri(
        summary=(
            f"In {days} day{'' if days == 1 else 's'} {found.searches} searches, {found.empty} of "
            "them found nothing. "
            f"Of {found.passages} passages {found.dead} were never shown or read, "
            f"{found.unhelpful} were never of use."
        ),
        about=ABOUT,
        since=show_time(found.since),
        passages=found.passages,
        foundational=found.foundational,
        archived=found.archived,
        searches=found.searches,
        empty=found.empty,
        by_words_alone=found.by_words_alone,
        judged=found.judged,
        of_use=found.of_use,
        dead=found.dead,
        unhelpful=found.unhelpful,
        blind=found.blind,
        blind_spots=tuple(
            ShownBlindSpot(
                each.question,
                each.where(),
                each.times,
                show_time(each.last_at),
                "found nothing" if each.found_nothing else "found nothing of use",
            )
            for each in found.blind_spots
        ),
        dead_passages=tuple(
            ShownDead(
                each.id,
                each.scope,
                each.tier,
                round(each.importance, 3),
                show_time(each.created_at),
                each.beginning,
            )
            for each in found.dead_passages
        ),
        unhelpful_passages=tuple(
            ShownFound(each.id, each.times, 0, each.not_used, each.beginning)
            for each in found.unhelpful_passages
        ),
        hot_passages=tuple(
            ShownFound(each.id, each.times, each.used, each.not_used, each.beginning)
            for each in found.hot_passages
        ),
        scopes=tuple(
            ShownScope(each.scope, each.passages, each.dead, each.times) for each in found.scopes
        ),
    )
