"""The guard against an agent that says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import Final

from han_solo import CheckContext, Finding, guard
from han_solo.turns.silence import hint_for

from ._turns import Ended, load_ended

LAST_TURNS: Final = 10
"""The question is how it stands now; a turn that others began costs a request."""

CRITICAL_FROM: Final = 2
"""One silent turn happens; the next one too, and the agent is mute."""

_BUDGET: Final = ("max_tokens", "enable_reasoner", "max_reasoning_tokens", "context_window")
_OF_TOKENS: Final = {"empty_output", "thinking_only", "max_tokens"}
"""Causes behind which may be that the model had no room for an answer."""


@guard(every_s=60, incident="silent-turn")
async def silent_agent(context: CheckContext) -> tuple[Finding, ...]:
    """Find an agent whose last turns held no word for the user, each with its cause.

    Turns that others began, as in Letta's own page, are looked at too. The finding is gone with the
    first answer.
    """
    turns = await load_ended(context, LAST_TURNS)
    silent = list(takewhile(lambda turn: turn.cause is not None, turns))
    if not silent:
        return ()
    by_cause: dict[str, list[Ended]] = {}
    for turn in silent:
        by_cause.setdefault(str(turn.cause), []).append(turn)
    config = (await context.agent()).llm_config
    budget = {name: config.get(name) for name in _BUDGET}
    return tuple(
        _build(cause, found, len(silent), budget, is_last=found[0] is silent[0])
        for cause, found in by_cause.items()
    )


def _build(
    cause: str, turns: list[Ended], silent: int, budget: Mapping[str, object], *, is_last: bool
) -> Finding:
    last, first = turns[0], turns[-1]
    count = "The last turn" if silent == 1 else f"{len(turns)} of the last {silent} turns"
    tools = ", ".join(dict.fromkeys(last.tools)) or "none"
    said = f"stop reason {last.stop_reason or 'none'}, steps {last.steps}, tools: {tools}"
    if cause in _OF_TOKENS:
        said += "".join(f", {name} {budget[name]}" for name in _BUDGET[:3])
    # While an approval is awaited Letta takes no message at all.
    is_critical = silent >= CRITICAL_FROM or (cause == "pending_approval" and is_last)
    return Finding(
        key=cause,
        summary=f"{count} held no word for the user ({cause}): {said}.",
        hint=hint_for(cause),
        severity="critical" if is_critical else "warning",
        detail={
            "cause": cause,
            "turns": len(turns),
            "since": first.at.isoformat(),
            "last": last.id,
            "sender": last.sender,
            "stop_reason": last.stop_reason,
            "steps": last.steps,
            "tools": list(last.tools),
            "budget": dict(budget),
        },
    )
