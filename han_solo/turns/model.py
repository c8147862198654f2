"""What is said of turns: what came of one, and the row that stays of it.

No text of a message is in the rows: what was said is Letta's to keep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, get_args
from uuid import UUID

from ..letta.turns import Turn

Cause = Literal[
    "max_steps",
    "empty_output",
    "thinking_only",
    "pending_approval",
    "provider_error",
    "tool_rule",
    "max_tokens",
    "cancelled",
    "unknown",
]
"""Why a turn held no word for the user, or broke off after one.

``max_steps``: its steps ran out on tools. ``empty_output``: the model wrote nothing.
``thinking_only``: it wrote down its reasoning and no answer. ``pending_approval``: a tool call
waits for approval. ``provider_error``: the model failed. ``tool_rule``: a rule ended the turn after
a tool. ``max_tokens``: the model's output was cut off. ``cancelled``: somebody cancelled it.
"""

CAUSES: Final[tuple[str, ...]] = get_args(Cause)

Outcome = Literal["answered", "silent", "unknown", "not_sent"]
"""``unknown``: it was sent, no answer came, and Letta has not said yet what came of it."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended. ``cause`` may stand beside an answer, of a turn that broke off after it.

    ``is_kept`` says whether the message stayed in the agent's context; None when that is unknown.
    """

    outcome: Outcome
    cause: Cause | None = None
    turn: Turn | None = field(default=None, repr=False)
    run_id: str | None = None
    is_kept: bool | None = None
    error: str | None = field(default=None, repr=False)
    """What Letta or the provider said about a failure; shown, not stored."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answered turn.

    ``cause`` is None for a turn that came to its end; otherwise the agent spoke and the turn broke
    off later, as when its steps ran out. ``reverted`` names the blocks in which older text was
    found after the turn and put right; None when nobody could look.
    """

    turn_id: UUID
    agent_id: str
    text: str = field(repr=False)
    turn: Turn = field(repr=False)
    cause: Cause | None
    reverted: tuple[str, ...] | None
    started_at: datetime
    ended_at: datetime | None
    """None when the database was away at the end; the row is completed by the next turn."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """The row of one turn.

    ``started_at`` is None until the sender has the floor; ``outcome`` is None while it waits or
    runs. ``sender_lives`` says whether the process that opened the row is still connected.
    """

    turn_id: UUID
    agent_id: str
    sender: str
    queued_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    outcome: Outcome | None
    cause: Cause | None
    stop_reason: str | None
    steps: int | None
    tools: tuple[str, ...]
    run_id: str | None
    reverted: tuple[str, ...] | None
    sender_lives: bool

    @property
    def is_settled(self) -> bool:
        return self.outcome is not None and self.outcome != "unknown"


FoundState = Literal["waiting", "running", "answered", "silent", "not_sent"]


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """What is known of a turn that was sent earlier, perhaps by a process that is gone.

    ``running`` is a turn that Letta has not ended, or one sent a moment ago that it may still take.
    ``not_sent``: Letta never took the message, so it can be sent again under a new id.
    """

    state: FoundState
    record: TurnRecord
    turn: Turn | None = field(default=None, repr=False)

    @property
    def text(self) -> str | None:
        """Return what the agent said."""
        return self.turn.assistant_text if self.turn else None
