"""Why a turn held no word for the user: the cause by its name, in a sentence, with what helps.

Letta answers 200 to most silent turns, as if all were well; docs/incidents/silent-turn.md has what
each cause looks like on a real server. ``find_cause`` reads the turn, ``cause_of_error`` the text
that a failed run leaves behind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ..errors import LettaError
from ..letta.turns import Turn
from .model import Cause, Ending

_BY_STOP_REASON: Final[dict[str, Cause]] = {
    "max_steps": "max_steps",
    "max_tokens_exceeded": "max_tokens",
    "requires_approval": "pending_approval",
    "tool_rule": "tool_rule",
    "cancelled": "cancelled",
    "error": "provider_error",
    "failed": "provider_error",
    "llm_api_error": "provider_error",
    "invalid_llm_response": "provider_error",
    "invalid_tool_call": "provider_error",
    "no_tool_call": "empty_output",
    "insufficient_credits": "provider_error",
    "context_window_overflow_in_system_prompt": "provider_error",
}

_EMPTY: Final = re.compile(
    r"returned empty content|No tool calls found in response|empty response", re.IGNORECASE
)
"""A null content fails in every agent; an older agent type fails for any output without a call."""

_PROVIDER: Final = re.compile(
    r"Error code: \d{3}|\bLLM\b|OpenAI|Anthropic|Google|Gemini|RATE_LIMIT|UNAUTHENTICATED",
)

_MAX_TOOLS_NAMED: Final = 6


def find_cause(turn: Turn) -> Cause | None:
    """Say why the turn was silent, or broke off after a word; None for one that ended well."""
    stopped: Cause | None = _BY_STOP_REASON.get(turn.stop_reason)
    if turn.assistant_text is not None:
        # A rule that ends the turn after a tool is meant to; the agent has spoken before it.
        return None if stopped == "tool_rule" else stopped
    if stopped is not None:
        return stopped
    if turn.stop_reason != "end_turn":
        return "unknown"
    return "thinking_only" if _ends_in_thought(turn) else "empty_output"


def cause_of_error(error: str | None) -> Cause:
    """Say what a failed run's text means."""
    if error and _EMPTY.search(error):
        return "empty_output"
    return "provider_error" if error and _PROVIDER.search(error) else "unknown"


def _ends_in_thought(turn: Turn) -> bool:
    return bool(turn.messages) and "reasoning" in turn.messages[-1].kind


class SilentTurn(LettaError):
    """A turn in which the agent said nothing to the user.

    ``cause`` is its stable name; ``turn`` is the turn as it was, None when Letta kept nothing of
    it. ``is_kept`` says whether the message stayed in the agent's context: one that did must not be
    sent again.
    """

    def __init__(
        self,
        *,
        agent_id: str,
        turn_id: UUID,
        ending: Ending,
        status_code: int | None = None,
    ) -> None:
        self.agent_id = agent_id
        self.turn_id = turn_id
        self.cause: Cause = ending.cause or "unknown"
        self.turn = ending.turn
        self.run_id = ending.run_id
        self.is_kept = ending.is_kept
        self.stop_reason = ending.turn.stop_reason if ending.turn else None
        self.steps = ending.turn.steps if ending.turn else 0
        self.tools = tools_of(ending.turn)
        words = _WORDS[self.cause]
        super().__init__(
            f"The agent {agent_id} said nothing: {self._fill(words.what, ending)}.",
            hint=f"{_KEPT[ending.is_kept]} {words.hint}",
            status_code=status_code,
        )

    def _fill(self, sentence: str, ending: Ending) -> str:
        awaited = ending.turn.awaited_tools if ending.turn else ()
        steps = f"{self.steps} {'step' if self.steps == 1 else 'steps'}"
        called = f" and calls of {_name(self.tools)}" if self.tools else ""
        return sentence.format(
            steps=steps,
            after=f" after {steps}{called}" if self.steps else "",
            tools=_name(self.tools) or "none",
            last=self.tools[-1] if self.tools else "a tool",
            awaited=_name(awaited) or "a tool",
            stop_reason=self.stop_reason or "none",
            error=(ending.error or "it does not say why").rstrip("."),
        )


def tools_of(turn: Turn | None) -> tuple[str, ...]:
    """Return the names of the tools that were called, in order."""
    return tuple(call.name for call in turn.tool_calls) if turn else ()


def _name(tools: tuple[str, ...]) -> str:
    named = tuple(dict.fromkeys(tools))
    more = len(named) - _MAX_TOOLS_NAMED
    shown = ", ".join(named[:_MAX_TOOLS_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


@dataclass(frozen=True, slots=True)
class _Words:
    what: str
    hint: str


_WORDS: Final[dict[Cause, _Words]] = {
    "max_steps": _Words(
        "it used up its {steps} on tools ({tools}) before it came to an answer",
        "If it happens again, look for instructions that demand searches before each reply, or "
        "allow more steps.",
    ),
    "empty_output": _Words(
        "its model wrote nothing{after}",
        "If it stays so, see the model (`han-solo doctor`); a provider's filter and a spent output "
        "budget look the same.",
    ),
    "thinking_only": _Words(
        "its model wrote down its reasoning and no answer{after}",
        "If it stays so, turn enable_reasoner off (sync-tools does) or give the model more output "
        "tokens.",
    ),
    "pending_approval": _Words(
        "a call of {awaited} waits for approval",
        "Approve or deny it in Letta, or take the requires_approval rule off; until then the agent "
        "takes no message.",
    ),
    "provider_error": _Words(
        "its model failed{after}: {error}",
        "See the provider's key, quota and status; `han-solo doctor` shows the model.",
    ),
    "tool_rule": _Words(
        "a tool rule ended the turn after {last}",
        "Take the rule off if the agent should speak after that tool.",
    ),
    "max_tokens": _Words(
        "its model's output was cut off at max_tokens before an answer{after}",
        "Raise max_tokens in the agent spec and run sync-tools.",
    ),
    "cancelled": _Words(
        "somebody cancelled the turn{after}",
        "What its tools did is done.",
    ),
    "unknown": _Words(
        "Letta gives the stop reason {stop_reason}{after}, and of an error: {error}",
        "Letta's log says more.",
    ),
}

_KEPT: Final[dict[bool | None, str]] = {
    True: "The message is in its context: ask for the answer, do not send it again.",
    False: "The message was not kept: send it again.",
    None: "Whether the message is in its context is not known: look before you send it again.",
}


def hint_for(cause: str) -> str:
    """Return what helps against a cause."""
    return next((words.hint for name, words in _WORDS.items() if name == cause), "")
