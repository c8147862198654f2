"""What one run of ``sync-tools`` works on: the connections, the services, the agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ..bridge.lister import list_live_tools
from ..bridge.projection import list_tools
from ..connections import Connections
from ..letta.gateway import LettaGateway
from ..loader import load_registry
from ..reconcile.ensure import Outcome, ensure_ren_tools, make_plan
from ..reconcile.identity import find_agent_id
from ..reconcile.model import Consent
from ..reconcile.plan import Plan
from ..reconcile.probe import Probe, find_new, probe_tools
from ..reconcile.services import ReconcileServices, build_services
from ..settings import Settings
from .services import open_database


@dataclass(slots=True)
class SyncSession:
    """One run; ``agent_id`` is None while there is no agent."""

    services: ReconcileServices
    gateway: LettaGateway
    reads: frozenset[str]
    agent_id: str | None = None

    async def make_plan(self, consent: Collection[Consent]) -> Plan | None:
        """Return the plan, or None when there is no agent to plan for yet."""
        self.agent_id = await find_agent_id(self.services)
        if self.agent_id is None:
            return None
        return await make_plan(self.services, self.agent_id, consent=consent)

    async def apply(self, consent: Collection[Consent], expected: Plan | None) -> Outcome:
        """Carry out the plan that was agreed to; without an agent, make it first."""
        return await ensure_ren_tools(
            self.services,
            prune="prune" in consent,
            detach_builtin_memory="detach_builtin_memory" in consent,
            expected=expected,
        )

    async def probe(self, outcome: Outcome) -> tuple[Probe, ...]:
        """Run each new tool that reads once through Letta."""
        return await probe_tools(
            self.gateway,
            outcome.agent_id,
            find_new(outcome.plan),
            self.services.declared,
            self.reads,
        )


@asynccontextmanager
async def open_session(settings: Settings) -> AsyncIterator[SyncSession]:
    """Load what is declared and connect to Postgres and Letta; all of it is closed at the end."""
    registry = load_registry(settings.extensions)
    where = Connections(settings)
    async with (
        open_database(settings) as db,
        LettaGateway.connect(
            where.letta_url,
            where.letta_password,
            timeout_s=settings.letta_timeout_s,
            message_timeout_s=settings.letta_message_timeout_s,
        ) as gateway,
    ):
        services = build_services(
            settings,
            gateway=gateway,
            db=db,
            declared=list_tools(registry, "agent"),
            list_live=list_live_tools,
        )
        reads = frozenset(spec.name for spec in registry if spec.effect == "read")
        yield SyncSession(services, gateway, reads)
