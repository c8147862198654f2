"""What a job may touch: the database, the settings, and, if it asks for it, the agent.

A job that needs no agent (a backup) runs while Letta is away, so the agent's parts are opened only
when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from .blocks.service import Blocks
    from .clock import Clock
    from .letta.gateway import LettaGateway
    from .reconcile.spec import AgentSpec
    from .runs.model import JobRun
    from .settings import Settings
    from .store.database import Database
    from .turns.service import Turns


@dataclass(frozen=True, slots=True)
class AgentParts:
    """The managed agent, for a job. ``blocks`` writes as kind ``job`` under the job's name."""

    agent_id: str
    spec: AgentSpec
    letta: LettaGateway
    blocks: Blocks
    turns: Turns


class OpenAgent(Protocol):
    """Opens the agent's parts for a job of that name; closed again at the end."""

    def __call__(
        self, job: str, *, message_timeout_s: float | None = None
    ) -> AbstractAsyncContextManager[AgentParts]: ...


Tell = Callable[[str], None]
"""Shows a person what is going on, such as that Letta is waited for."""


@dataclass(frozen=True, slots=True)
class JobContext:
    """One run of a job.

    ``run`` names the period and when it was due; ``zone`` is the one that days are counted in.
    """

    run: JobRun
    settings: Settings
    db: Database
    clock: Clock
    zone: ZoneInfo
    open_agent: OpenAgent
    tell: Tell

    @property
    def now(self) -> datetime:
        return self.clock.now()

    async def load_notes(self, since: datetime, until: datetime) -> tuple[str, ...]:
        """Return what the store holds of a stretch of time, as lines: the notecards made in it."""
        from .memory.notecards import Notecards  # noqa: PLC0415 - a job's import of the front is light

        return await Notecards(self.db, self.clock).list_made(since, until)

    async def load_remembered(self, since: datetime, until: datetime) -> tuple[str, ...]:
        """Return the passages that were written in a stretch of time, as lines."""
        from .memory.passage_day import list_made  # noqa: PLC0415 - as above

        return await list_made(self.db, since, until)
