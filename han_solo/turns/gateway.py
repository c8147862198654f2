"""What the turns need of Letta; ``LettaGateway`` has it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol
from uuid import UUID

from ..letta.floor import Floor
from ..letta.runs import KeptTurn, RunView
from ..letta.turns import Turn


class MessageGateway(Protocol):
    """One message, and what Letta records of turns."""

    async def send_message(
        self, floor: Floor, message: str, *, max_steps: int | None = None
    ) -> Turn: ...
    async def fetch_active_runs(self, agent_id: str) -> tuple[RunView, ...]: ...
    async def find_runs(
        self, agent_id: str, turn_ids: Collection[UUID]
    ) -> Mapping[UUID, RunView]: ...
    async def fetch_kept(self, run: RunView) -> KeptTurn: ...
    async def fetch_last_activity(self, run: RunView) -> datetime: ...
