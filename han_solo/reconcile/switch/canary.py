"""The canary: one turn of a throw-away agent that has the new configuration and the agent's tools.

It has no block and no memory, and the bridge refuses whatever it would write, so all that can come
of it is an answer. It is what tells a model that answers from one that is only listed: a key that
expired, a tool schema that the provider does not take, a reasoner that swallows every word.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from ... import logs
from ...errors import HanSoloError, LettaError
from ...letta.turns import Turn
from .plan import SwitchPlan
from .services import SwitchServices

QUESTION: Final = "This is a test of the connection. Answer with the word: ready"
MAX_STEPS: Final = 3
"""One is enough; a model that calls a tool first all the same gets to speak after it."""

_log = logs.get("switch")


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it. ``cause`` is None when the model answered."""

    cause: str | None
    sentence: str
    duration_ms: int
    tools: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        return self.cause is None

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values; what was said is not kept."""
        return {
            "answered": self.answered,
            "cause": self.cause,
            "sentence": self.sentence,
            "duration_ms": self.duration_ms,
            "tools": list(self.tools),
        }


@dataclass(frozen=True, slots=True)
class _OwnFloor:
    """The floor of an agent that nobody else knows."""

    agent_id: str
    turn_id: UUID = field(default_factory=uuid.uuid4)

    def require_held(self) -> None:
        """Return: nobody else speaks to it."""


async def try_model(services: SwitchServices, plan: SwitchPlan, switch_id: UUID) -> Trial:
    """Let a canary take one turn, and end it.

    Raises:
        DatabaseUnavailable: the canary could not be noted; nothing was sent to it.
    """
    started = time.monotonic()

    def build(cause: str | None, sentence: str, turn: Turn | None = None) -> Trial:
        called = tuple(call.name for call in turn.tool_calls) if turn else ()
        return Trial(cause, sentence, round((time.monotonic() - started) * 1000), called)

    try:
        canary = await services.gateway.create_canary(
            plan.agent_id, plan.new_config, list(plan.tools)
        )
    except LettaError as error:
        return build("not_made", f"The canary could not be made: {error.message}")
    try:
        await services.journal.note_canary(canary.id, plan.agent_id, switch_id)
        lost = plan.tools.keys() - {tool.id for tool in canary.tools}
        if canary.llm_config != plan.new_config or lost:
            return build(
                "differs", "Letta gave the canary other settings or tools than it was sent."
            )
        async with asyncio.timeout(services.canary_timeout_s):
            turn = await services.gateway.send_message(
                _OwnFloor(canary.id), QUESTION, max_steps=MAX_STEPS
            )
    except TimeoutError:
        return build("timeout", f"The canary said nothing for {services.canary_timeout_s:g} s.")
    except LettaError as error:
        return build("failed", f"The canary's turn failed: {error.message}")
    finally:
        await _end(services, canary.id)
    cause = services.find_cause(turn)
    if cause is not None:
        return build(cause, f"The canary did not answer: {cause.replace('_', ' ')}.", turn)
    return build(None, "The canary answered.", turn)


async def _end(services: SwitchServices, canary_id: str) -> None:
    """End the canary; when that fails, the next start does it."""
    try:
        await services.gateway.end_canary(canary_id)
        await services.journal.note_ended(canary_id)
    except HanSoloError as error:
        _log.warning("switch.canary_left", canary_id=canary_id, error=type(error).__name__)
