"""Messages and blocks put together: after each turn the agent's blocks are looked at.

``turns`` and ``blocks`` lie side by side and know nothing of each other; whoever speaks with the
agent (an operator's tool, a job, ``up --check``) takes its ``Turns`` from here.
"""

from __future__ import annotations

from ..blocks.service import Blocks
from ..clock import Clock
from ..settings import Settings
from ..store.database import Database
from ..turns.gateway import MessageGateway
from ..turns.service import Turns


def build_turns(
    settings: Settings,
    *,
    db: Database,
    gateway: MessageGateway,
    agent_id: str,
    blocks: Blocks,
    clock: Clock | None = None,
) -> Turns:
    """Build the turns of an agent."""
    return Turns(
        db,
        gateway,
        agent_id,
        gap_s=settings.message_gap_s,
        wait_s=settings.message_wait_s,
        after_turn=lambda: find_reverts(blocks),
        clock=clock,
    )


async def find_reverts(blocks: Blocks) -> tuple[str, ...]:
    """Look for blocks that hold an older text again, put them right, and return their labels."""
    return tuple(
        inspection.label
        for inspection in await blocks.inspect()
        if any(event.undone for event in inspection.events)
    )
