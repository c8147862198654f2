"""What guards work on, put together from the settings by whoever runs them."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from ..blocks.model import CARETAKER, Rights
from ..blocks.service import Blocks
from ..blocks.versions import BlockVersions
from ..bridge.conversation import build_turns
from ..clock import Clock
from ..declare import JobSpec
from ..findings.service import Findings
from ..findings.snapshots import Snapshots
from ..guard_context import GuardServices
from ..letta.gateway import LettaGateway
from ..memory.opening import open_passages
from ..memory.vector_health import VectorCare
from ..reconcile.services import ReconcileServices
from ..runs.describe import JobState, load_state
from ..runs.service import JobRuns
from ..settings import Settings
from ..store.database import Database
from ..timers.launchd import Launchd
from ..timers.model import Manager, TimersView
from ..timers.service import look
from ..timers.systemd import Systemd
from ..transcripts.health import CaptureHealth, look_at_capture

RUNS_LOOKED_AT = 20
"""Of a job, to count those that failed in a row."""


def build_guard_services(
    settings: Settings,
    reconcile: ReconcileServices,
    gateway: LettaGateway,
    agent_id: str,
    clock: Clock | None = None,
    *,
    callback_tools: frozenset[str] = frozenset(),
    jobs: Sequence[JobSpec] = (),
    run_due: Callable[[str], Awaitable[str]] | None = None,
) -> GuardServices:
    """Build the services of one agent's guards; blocks are written as the caretaker.

    Args:
        settings: the settings.
        reconcile: what a sync works on; its database is used for the rest too.
        gateway: Letta.
        agent_id: the managed agent.
        clock: the time, unless the real one.
        callback_tools: our tools that may message the agent; ``Registry.callback_tools``.
        jobs: the declared jobs.
        run_due: has a due job run.
    """
    db, clock = reconcile.db, clock or reconcile.clock
    blocks = Blocks(
        gateway,
        BlockVersions(db, clock),
        agent_id,
        CARETAKER,
        rights=Rights.of(reconcile.spec.blocks),
        timeout_s=settings.letta_timeout_s,
        clock=clock,
    )
    return GuardServices(
        reconcile=reconcile,
        letta=gateway,
        blocks=blocks,
        turns=build_turns(
            settings, db=db, gateway=gateway, agent_id=agent_id, blocks=blocks, clock=clock
        ),
        findings=Findings(db, clock),
        snapshots=Snapshots(db, clock),
        clock=clock,
        callback_tools=callback_tools,
        load_jobs=build_load_jobs(db, jobs, settings.zone, clock),
        run_due=run_due,
        load_timers=build_load_timers(settings),
        load_capture=build_load_capture(settings, db, clock),
        vectors=VectorCare(db, lambda: open_passages(settings, db, clock).vectors),
    )


def build_load_timers(settings: Settings) -> Callable[[], TimersView]:
    """Return what reads the timers of this user, beside our own home and interpreter."""
    manager: Manager = Launchd() if sys.platform == "darwin" else Systemd()
    return lambda: look(manager, settings.at.root, Path(sys.executable).absolute())


def build_load_capture(
    settings: Settings, db: Database, clock: Clock, machine: str | None = None
) -> Callable[[], Awaitable[CaptureHealth | None]]:
    """Return what looks whether transcripts come in; while all jobs are paused nobody does."""
    runs = JobRuns(db, clock)

    async def load() -> CaptureHealth | None:
        if (await runs.load_pause()).is_paused:
            return None
        return await look_at_capture(
            db,
            settings.transcripts,
            excluded=settings.transcripts_excluded,
            load_runs=lambda: runs.history("transcripts", limit_rows=RUNS_LOOKED_AT),
            now=clock.now(),
            machine=machine,
        )

    return load


def build_load_jobs(
    db: Database, jobs: Sequence[JobSpec], zone: ZoneInfo, clock: Clock
) -> Callable[[], Awaitable[tuple[JobState, ...]]]:
    """Return what reads how the jobs stand; while all are paused nothing is owed."""
    runs = JobRuns(db, clock)

    async def load() -> tuple[JobState, ...]:
        if (await runs.load_pause()).is_paused:
            return ()
        return tuple([await load_state(runs, spec, clock.now(), zone) for spec in jobs])

    return load
