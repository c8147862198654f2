"""What providers make of reasoning: which models always reason, and which need a budget for it.

The agent's reasoner is off, explicitly, with every model. Where a provider has its own mind about
that, whoever switches is told before anything is changed. Each row names the page it was read on;
``docs/reference/reasoning.md`` is made from this table. How Letta 0.16.8 passes the settings on was
read in its clients.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["always_on", "needs_budget", "refuses_budget", "by_effort"]

_GOOGLE: Final = "https://ai.google.dev/gemini-api/docs/thinking"
_ANTHROPIC: Final = "https://platform.claude.com/docs/en/build-with-claude/extended-thinking"
_FABLE: Final = "https://platform.claude.com/docs/en/models/fable-5/migration-guide"
_OPENAI: Final = "https://platform.openai.com/docs/guides/reasoning"
_XAI: Final = "https://docs.x.ai/docs/guides/reasoning"
_DEEPSEEK: Final = "https://api-docs.deepseek.com/guides/reasoning_model"


@dataclass(frozen=True, slots=True)
class Rule:
    """What is known of some models.

    ``pattern`` is found in the model's name; ``min_budget`` is in tokens, and counts when the
    reasoner is on.
    """

    models: str
    pattern: str
    kind: Kind
    sentence: str
    source: str
    min_budget: int = 0

    def fits(self, model: str) -> bool:
        return re.search(self.pattern, model) is not None


RULES: Final = (
    Rule(
        "Gemini 2.5 Pro",
        r"gemini-2\.5-pro",
        "always_on",
        "always reasons: its thinking can not be switched off. With the reasoner off Letta gives "
        "it 128 tokens for that, the least there is.",
        _GOOGLE,
        min_budget=128,
    ),
    Rule(
        "Gemini 3",
        r"gemini-3",
        "always_on",
        "always reasons: its thinking can be lowered and not switched off, and Letta leaves it at "
        "the model's own level.",
        _GOOGLE,
    ),
    Rule(
        "Gemini 2.5 Flash-Lite",
        r"gemini-2\.5-flash-lite",
        "needs_budget",
        "takes a thinking budget of 512 tokens or more, or 0 for none.",
        _GOOGLE,
        min_budget=512,
    ),
    Rule(
        "Gemini 2.5 Flash",
        r"gemini-2\.5-flash(?!-lite)",
        "needs_budget",
        "reasons unless its thinking budget is 0, which is what Letta sends with the reasoner off.",
        _GOOGLE,
        min_budget=1,
    ),
    Rule(
        "Claude Fable and Mythos",
        r"claude-(fable|mythos)",
        "always_on",
        "always reasons, by itself, and refuses requests that switch its thinking off or give it a "
        "budget.",
        _FABLE,
    ),
    Rule(
        "Claude 4.7 and later",
        r"claude-(opus|sonnet|haiku)-(4-[7-9]|[5-9])(?!\d)",
        "refuses_budget",
        "refuses a thinking budget, which is what Letta sends it with the reasoner on.",
        _ANTHROPIC,
    ),
    Rule(
        "Claude 3.7 to 4.6",
        r"claude-(3-7|(opus|sonnet|haiku)-4(?!-[7-9](?!\d)))",
        "needs_budget",
        "takes a thinking budget of 1,024 tokens or more, and less than max_tokens.",
        _ANTHROPIC,
        min_budget=1024,
    ),
    Rule(
        "OpenAI o1, o3, o4",
        r"(^|/)o[134](-|$)",
        "always_on",
        "always reasons: its effort can be lowered and not switched off.",
        _OPENAI,
    ),
    Rule(
        "GPT-5, before 5.1",
        r"gpt-5(?!\.)(?!-chat)",
        "always_on",
        "always reasons: its effort can be lowered and not switched off.",
        _OPENAI,
    ),
    Rule(
        "GPT-5.1 and later",
        r"gpt-5\.",
        "by_effort",
        "reasons by its reasoning_effort, whatever enable_reasoner says; none switches it off.",
        _OPENAI,
    ),
    Rule(
        "Grok 4",
        r"grok-4(?!\.3)(?!.*non-reasoning)",
        "always_on",
        "always reasons: it can not be switched off.",
        _XAI,
    ),
    Rule(
        "DeepSeek Reasoner",
        r"deepseek-(reasoner|r1)",
        "always_on",
        "always reasons: the other model of the provider is the one that does not.",
        _DEEPSEEK,
    ),
)


def find_rule(model: str) -> Rule | None:
    """Return what is known of a model's reasoning."""
    return next((rule for rule in RULES if rule.fits(model)), None)


def find_concern(config: Mapping[str, object]) -> Rule | None:
    """Return the rule that someone should hear of before an agent gets this configuration.

    A model that can be switched off, and is, is no concern.
    """
    rule = find_rule(str(config.get("model") or ""))
    if rule is None or rule.kind in {"always_on", "by_effort"} or config.get("enable_reasoner"):
        return rule
    return None


def lacks_budget(config: Mapping[str, object]) -> Rule | None:
    """Return the rule that forbids this configuration: a reasoner without the budget it needs."""
    rule = find_rule(str(config.get("model") or ""))
    budget = config.get("max_reasoning_tokens") or 0
    if rule is None or not config.get("enable_reasoner") or not isinstance(budget, int):
        return None
    return rule if rule.kind == "refuses_budget" or budget < rule.min_budget else None
