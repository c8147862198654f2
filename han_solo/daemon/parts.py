"""What the daemon works on, opened whole and closed at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ..bridge.lister import list_live_tools
from ..bridge.projection import list_tools
from ..clock import Clock
from ..connections import Connections
from ..letta.gateway import LettaGateway
from ..reconcile.services import ReconcileServices, build_services
from ..registry import Registry
from ..runs.service import JobRuns
from ..settings import Settings
from ..store.database import Database
from ..store.migrate import apply_migrations
from .agent_parts import build_open_agent
from .jobs import JobServices


@dataclass(frozen=True, slots=True)
class Parts:
    """The connections of one daemon. ``guards`` may use Letta while ``jobs`` wait for a turn."""

    settings: Settings
    registry: Registry
    db: Database
    gateway: LettaGateway
    reconcile: ReconcileServices
    jobs: JobServices
    clock: Clock


@asynccontextmanager
async def open_parts(settings: Settings, registry: Registry, clock: Clock) -> AsyncIterator[Parts]:
    """Connect to Postgres, at this release's schema, and make ready for Letta.

    Raises:
        DatabaseUnavailable: try again.
        HanSoloError: something can not be used as it is set.
    """
    where = Connections(settings)
    db = await Database.connect(
        where.database_url,
        direct_url=where.database_direct_url,
        pooler=settings.database_pooler,
        pool_size=settings.database_pool_size,
        timeout_s=settings.database_timeout_s,
    )
    try:
        await apply_migrations(db, clock=clock)
        async with LettaGateway.connect(
            where.letta_url,
            where.letta_password,
            timeout_s=settings.letta_timeout_s,
            message_timeout_s=settings.letta_message_timeout_s,
        ) as gateway:
            reconcile = build_services(
                settings,
                gateway=gateway,
                db=db,
                declared=list_tools(registry, "agent"),
                list_live=list_live_tools,
            )
            jobs = JobServices(
                settings=settings,
                db=db,
                runs=JobRuns(db, clock),
                zone=settings.zone,
                open_agent=build_open_agent(settings, db, clock),
                clock=clock,
            )
            yield Parts(settings, registry, db, gateway, reconcile, jobs, clock)
    finally:
        await db.close()
