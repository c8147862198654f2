"""A floor for tests of the gateway alone; the real one is in ``han_solo.turns``."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from han_solo.errors import AgentBusy


@dataclass(frozen=True)
class OpenFloor:
    """The right to send one message, given to whoever asks."""

    agent_id: str
    turn_id: uuid.UUID = field(default_factory=uuid.uuid4)
    is_held: bool = True

    def require_held(self) -> None:
        if not self.is_held:
            raise AgentBusy("The floor was lost.", agent_id=self.agent_id)
