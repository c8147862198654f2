"""Jobs made for a test, and what they run on: the real Postgres and a clock."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Any
from zoneinfo import ZoneInfo

from han_solo.clock import Clock
from han_solo.daemon.agent_parts import build_open_agent
from han_solo.daemon.jobs import JobServices
from han_solo.declare import Daily, JobSpec
from han_solo.runs.service import JobRuns
from han_solo.settings import Settings
from tests.integration.store_fixtures import migrated


def build_job(function: Callable[..., Any], name: str = "sweep", **changes: Any) -> JobSpec:
    """Build the spec of a job that no file declares."""
    spec = JobSpec(
        name=name,
        function=function,
        when=Daily("03:30"),
        timeout_s=60.0,
        overdue_s=3600.0,
        is_repeatable=False,
        description="Does it.",
        source="test",
    )
    return dataclasses.replace(spec, **changes)


@contextlib.asynccontextmanager
async def open_jobs(
    database_url: str,
    *,
    clock: Any = None,
    lease_s: float = 60.0,
    heartbeat_s: float = 15.0,
    **settings: Any,
) -> AsyncIterator[JobServices]:
    """Open what jobs run on; days are counted in UTC unless told otherwise."""
    found = Settings(
        _env_file=None, **({"database_url": database_url, "timezone": "UTC"} | settings)
    )
    clock = clock or Clock()
    async with migrated(database_url) as db:
        async with db.transaction() as connection:  # an installation of long ago owes all its jobs
            await connection.execute("UPDATE han_solo.migrations SET applied_at = '2026-01-01'")
        yield JobServices(
            settings=found,
            db=db,
            runs=JobRuns(db, clock, lease_s=lease_s),
            zone=ZoneInfo(found.timezone or "UTC"),
            open_agent=build_open_agent(found, db, clock),
            clock=clock,
            heartbeat_s=heartbeat_s,
        )
