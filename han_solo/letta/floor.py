"""The floor: what a caller must hold to send the agent a message.

Letta never locks: turns that overlap all answer 200, and all but one drop out of the agent's
context. So ``LettaGateway.send_message`` takes no agent's id; it takes a ``Floor``, which names the
agent and the turn, and asks it whether it is still held before anything is sent. The service that
makes one is ``han_solo.turns``; it lies above this package, hence the protocol.
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID


class Floor(Protocol):
    """The right to send one message to one agent."""

    @property
    def agent_id(self) -> str: ...

    @property
    def turn_id(self) -> UUID:
        """The turn's own id: the message and Letta's run bear it, so both can be found again."""
        ...

    def require_held(self) -> None:
        """Return when it is still held.

        Raises:
            AgentBusy: it was lost, so another turn may have begun.
        """
        ...
