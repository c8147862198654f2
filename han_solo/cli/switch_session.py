"""What one run of ``switch-model`` works on: Postgres, Letta, the spec, the agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ..clock import Clock
from ..connections import Connections
from ..errors import NotFound, UsageError
from ..letta.gateway import LettaGateway
from ..reconcile.known import KnownAgent
from ..reconcile.spec import load_spec
from ..reconcile.switch.plan import SwitchPlan
from ..reconcile.switch.preflight import Wanted, make_switch_plan
from ..reconcile.switch.run import Switched, switch_model
from ..reconcile.switch.services import SwitchServices
from ..settings import Settings
from ..store.database import Database
from ..turns.silence import find_cause
from .services import open_database


@dataclass(frozen=True, slots=True)
class SwitchSession:
    """One run."""

    services: SwitchServices
    agent_id: str

    async def make_plan(self, wanted: Wanted) -> SwitchPlan:
        """Return what the switch would do."""
        return await make_switch_plan(self.services, self.agent_id, wanted)

    async def switch(self, wanted: Wanted, expected: SwitchPlan) -> Switched:
        """Carry out the plan that was agreed to."""
        return await switch_model(self.services, self.agent_id, wanted, expected=expected)


@asynccontextmanager
async def open_session(
    settings: Settings, *, canary_timeout_s: float
) -> AsyncIterator[SwitchSession]:
    """Connect to Postgres and Letta; both are closed at the end.

    Raises:
        NotFound: there is no agent yet.
        UsageError: the settings name another agent than the database.
    """
    where = Connections(settings)
    spec = load_spec(settings.agent_spec, person=settings.person, model=where.model)
    async with (
        open_database(settings) as db,
        LettaGateway.connect(
            where.letta_url,
            where.letta_password,
            timeout_s=settings.letta_timeout_s,
            message_timeout_s=canary_timeout_s,
        ) as gateway,
    ):
        agent_id = await _find_agent_id(db, spec.name, settings.agent_id)
        yield SwitchSession(
            SwitchServices(gateway, db, spec, find_cause, Clock(), canary_timeout_s), agent_id
        )


async def _find_agent_id(db: Database, name: str, wanted: str | None) -> str:
    stored = await KnownAgent(db, name, Clock()).load_agent_id()
    if stored is None and wanted is None:
        raise NotFound(
            f"There is no agent {name!r} yet, so there is nothing to switch.",
            hint="Run `han-solo up` (scripts/up), which makes it from its spec.",
        )
    if stored and wanted and stored != wanted:
        raise UsageError(
            f"HAN_SOLO_AGENT_ID is {wanted}, but {name!r} is known as {stored}.",
            hint="Unset it, or run sync-tools to take the other agent over.",
        )
    return str(stored or wanted)
