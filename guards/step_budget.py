"""The guard against turns that are spent on tools, and instructions that make them so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from han_solo import CheckContext, Finding, guard

LAST_TURNS: Final = 10

_EACH_REPLY: Final = (
    r"(?:before|prior\ to) \b [^.\n]{0,40} \b (?:every|each|any|all) \b [^.\n]{0,20}"
    r"\b (?:message|repl(?:y|ies)|response|answer|turn)s?"
)
_SEARCH: Final = r"\b (?:search|look (?:\s+\w+)? \s+ up|query|consult) \b"
_MODE: Final = re.IGNORECASE | re.VERBOSE

_DEMANDS: Final = (
    re.compile(rf"{_SEARCH} [^.\n]{{0,80}} \b {_EACH_REPLY}", _MODE),
    re.compile(rf"\b {_EACH_REPLY} [^.\n]{{0,60}} {_SEARCH}", _MODE),
    re.compile(
        rf"\b (?:always|must) \b [^.\n]{{0,30}} {_SEARCH} [^.\n]{{0,80}}"
        r"\b (?:before|prior\ to) \b \s+ (?:you\s+)? (?:repl|respond|answer|speak)",
        _MODE,
    ),
)
"""A search before each reply, in the three ways in which it is usually demanded."""

_NOT: Final = re.compile(r"\b(?:never|not|don't|no need to|without)\b[^.\n]{0,30}$", re.IGNORECASE)
"""Right before it: the sentence forbids what it names."""


@guard(every_s=300, incident="step-budget")
async def step_budget(context: CheckContext) -> tuple[Finding, ...]:
    """Find turns that spent every step on tools, and instructions that demand a search each time.

    The instructions are looked for in the system prompt and in all blocks, whoever wrote them.
    """
    found: list[Finding] = []
    ended = [turn for turn in await context.turns(LAST_TURNS) if turn.is_settled]
    spent = [turn for turn in ended if turn.cause == "max_steps"]
    if spent:
        tools = sorted({name for turn in spent for name in turn.tools})
        found.append(
            Finding(
                key="turns",
                summary=f"{len(spent)} of the last {len(ended)} turns used up every step "
                f"({spent[0].steps}) on tools: {', '.join(tools)}.",
                hint="Look for instructions that demand searches; a rule max_count_per_step in the "
                "spec bounds a tool, and the sender can allow more steps.",
                detail={"turns": len(spent), "of": len(ended), "tools": tools},
            )
        )
    texts = {"system prompt": (await context.agent()).system}
    texts |= {state.label: state.value for state in await context.blocks()}
    for where, text in texts.items():
        if demand := next(_find_demands(text), None):
            found.append(
                Finding(
                    key=f"instruction:{where}",
                    summary=f"The text of {where} demands a search before each reply, in its line "
                    f"{demand}; each search takes one of a turn's steps.",
                    hint="Say when a search is needed instead, and to keep the last step for the "
                    "answer.",
                    detail={"where": where, "line": demand},
                )
            )
    return tuple(found)


def _find_demands(text: str) -> Iterator[int]:
    """Yield the numbers of the lines that demand a search each time."""
    for pattern in _DEMANDS:
        for match in pattern.finditer(text):
            if not _NOT.search(text[: match.start()]):
                yield text.count("\n", 0, match.start()) + 1
