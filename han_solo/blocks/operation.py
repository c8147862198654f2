"""One operation on one block: its deadline, what it found on the way, and what is at stake."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from ..letta.views import AgentView, BlockView
from .model import Event
from .records import Intent, Text


class BlockGateway(Protocol):
    """What is needed of Letta; ``LettaGateway`` is one."""

    async def fetch_agent(self, agent_id: str) -> AgentView: ...
    async def fetch_block(self, block_id: str) -> BlockView: ...
    async def write_block(self, block_id: str, value: str) -> BlockView: ...


@dataclass(frozen=True, slots=True)
class Landed:
    """A text that Letta holds and whose version is not committed yet.

    ``block`` is the block before; ``is_goal`` says whether the text is what was asked for, and not
    a repair on the way there.
    """

    intent: Intent
    block: BlockView
    is_goal: bool


@dataclass(frozen=True, slots=True)
class Undone:
    """An outside edit, version ``theirs``, that was made on ``base`` and undid ``ours``."""

    base: int
    ours: int
    theirs: int

    @property
    def versions(self) -> tuple[int, ...]:
        return tuple(range(self.base + 1, self.ours + 1))


@dataclass(slots=True)
class Operation:
    """What one call carries from round to round; each round ends with a commit.

    ``goal`` is what was asked for, as the version that it became, should it have been overwritten
    before it was read back. ``conflicts`` counts meetings with writers outside.
    """

    label: str
    events: list[Event] = field(default_factory=list)
    landed: Landed | None = None
    undone: Undone | None = None
    goal: tuple[int, Text] | None = None
    conflicts: int = 0
    deadline_s: float = 0.0
    _limit: asyncio.Timeout | None = None

    def start(self, limit: asyncio.Timeout, timeout_s: float) -> None:
        """Begin the time that the operation has."""
        self._limit = limit
        self.deadline_s = asyncio.get_running_loop().time() + timeout_s

    @property
    def rest_s(self) -> float:
        """Return the seconds until its deadline."""
        return max(0.0, self.deadline_s - asyncio.get_running_loop().time())

    def allow(self, more_s: float) -> None:
        """Set how long after its deadline the operation may still go on."""
        assert self._limit is not None
        self._limit.reschedule(self.deadline_s + more_s)
