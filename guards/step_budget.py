"""The guard against turns that are spent on tools, and instructions that make them so."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.reconcile.plan import PatchSystem, PatchToolRules, kind_of
from han_solo.reconcile.prose import Prose

from ._turns import Ended, load_ended

LAST_TURNS: Final = 10
SYSTEM: Final = "system prompt"

_SEARCH: Final = (
    r"(?:search(?:es|ed|ing)?|look(?:ing)?(?: \S+)? up|quer(?:y|ies|ied|ying)|consult(?:s|ed|ing)?)"
)
_EACH: Final = r"(?:every|each|any|all|your)\b[^\n]{0,30}\b(?:message|repl|response|answer|turn)"
_SPEAK: Final = r"(?:you )?(?:repl|respond|answer|speak)"

_DEMANDS: Final = (
    re.compile(rf"\b{_SEARCH}\b[^\n]{{0,80}}\b(?:before|prior to|for|on) {_EACH}"),
    re.compile(rf"\b(?:before|prior to|for|on) {_EACH}[^\n]{{0,60}}\b{_SEARCH}\b"),
    re.compile(
        rf"\b(?:always|must|first)\b[^\n]{{0,30}}\b{_SEARCH}\b[^\n]{{0,80}}\bbefore {_SPEAK}"
    ),
    re.compile(rf"\b{_SEARCH}\b[^\n]{{0,40}}\b(?:always|first)\b[^\n]{{0,40}}\bbefore {_SPEAK}"),
    re.compile(
        rf"\b(?:never|not|don't) {_SPEAK}[^\n]{{0,60}}\b(?:without|before|until)\b"
        rf"[^\n]{{0,40}}\b{_SEARCH}\b"
    ),
)
"""A search before each reply, in the ways in which it is demanded; ``\\n`` ends a sentence here."""


async def _put_declared_back(context: RemedyContext, _findings: tuple[Finding, ...]) -> str:
    """Put back what the spec declares: the prompt and the tool rules. Blocks are block_rules'."""
    outcome = await context.apply(lambda step: isinstance(step, PatchSystem | PatchToolRules))
    if not outcome.plan.steps:
        return "The system prompt and the tool rules are as declared, or not declared."
    kinds = ", ".join(kind_of(step) for step in outcome.plan.steps)
    return f"Put back as declared, and read back: {kinds}."


@guard(every_s=300, incident="step-budget", remedy=_put_declared_back)
async def step_budget(context: CheckContext) -> tuple[Finding, ...]:
    """Find turns that spent every step on tools, and instructions that demand a search each time.

    The instructions are looked for in the system prompt and in all blocks, whoever wrote them.
    """
    turns = await load_ended(context, LAST_TURNS)
    spent = [turn for turn in turns if turn.cause == "max_steps"]
    found = [_build_spent(spent, len(turns))] if spent else []
    texts = {SYSTEM: (await context.agent()).system}
    texts |= {state.label: state.value for state in await context.blocks()}
    for where, text in texts.items():
        if (line := find_demand(text)) is not None:
            found.append(_build_demand(where, line))
    return tuple(found)


def find_demand(text: str) -> int | None:
    """Return the line that demands a search before each reply; one that forbids it is none."""
    prose = Prose(text)
    lines = [line for demand in _DEMANDS if (line := prose.find_order(demand)) is not None]
    return min(lines, default=None)


def _build_spent(spent: list[Ended], of: int) -> Finding:
    tools = Counter(name for turn in spent for name in turn.tools)
    named = ", ".join(f"{name} {count} times" for name, count in tools.most_common(5))
    often = f", most often {tools.most_common(1)[0][0]}" if tools else ""
    return Finding(
        key="turns",
        summary=f"{len(spent)} of the last {of} turns used up every step on tools ({named}); the "
        f"last had {spent[0].steps}.",
        hint="Look for instructions that demand searches; a tool rule max_count_per_step in the "
        f"spec bounds how often a turn calls a tool{often}.",
        detail={
            "turns": len(spent),
            "of": of,
            "steps": spent[0].steps,
            "tools": dict(tools),
            "last": spent[0].id,
        },
    )


def _build_demand(where: str, line: int) -> Finding:
    by_hand = "sync-tools puts a declared one back" if where == SYSTEM else "block_rules can forbid"
    return Finding(
        key=f"instruction:{where}",
        summary=f"Line {line} of the {where if where == SYSTEM else f'block {where!r}'} demands a "
        "search before each reply; each search takes one of a turn's steps.",
        hint="Say when a search is needed instead, and to keep the last step for the answer; "
        + (f"{by_hand}." if where == SYSTEM else f"rules in the spec let {by_hand} it."),
        detail={"where": where, "line": line},
    )
