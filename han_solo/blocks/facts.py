"""What is known of agents for a few seconds: their blocks' ids, and Letta's memory tools on them.

Reading an agent takes Letta twice as long as reading a block. A write needs from it only which
block a label is and whether a built-in memory tool is attached, and both change by hand or by a
sync. A tool that is attached within these seconds can revert a write, which the inspection after
the turn finds and puts right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..declare import LETTA_MEMORY_BUILTINS
from ..letta.views import AgentView

FRESH_S: Final = 5.0
"""An agent reads a block before it writes it, and appends come in runs; that is covered."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One agent, as it was read at ``read_at_s`` on the loop's clock."""

    name: str
    block_ids: Mapping[str, str]
    builtins: tuple[str, ...]
    read_at_s: float

    @property
    def are_fresh(self) -> bool:
        return asyncio.get_running_loop().time() - self.read_at_s <= FRESH_S


class AgentFacts:
    """The facts of all agents of this process."""

    def __init__(self) -> None:
        self._known: dict[str, Facts] = {}

    def learn(self, agent: AgentView) -> Facts:
        """Note what a read of the agent showed."""
        facts = Facts(
            name=agent.name,
            block_ids={block.label: block.id for block in agent.blocks},
            builtins=tuple(
                sorted(tool.name for tool in agent.tools if tool.name in LETTA_MEMORY_BUILTINS)
            ),
            read_at_s=asyncio.get_running_loop().time(),
        )
        if facts.builtins:  # what writes are refused for may be mended at any moment
            self.forget(agent.id)
        else:
            self._known[agent.id] = facts
        return facts

    def recall(self, agent_id: str) -> Facts | None:
        """Return what is known of an agent, unless that is too old."""
        facts = self._known.get(agent_id)
        return facts if facts and facts.are_fresh else None

    def forget(self, agent_id: str) -> None:
        """Have the agent read again at the next use."""
        self._known.pop(agent_id, None)
