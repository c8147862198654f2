"""The night's job did not run, then failed for good, and both times somebody is told."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from han_solo.clock import Clock
from han_solo.daemon.jobs import JobServices, run_job
from han_solo.daemon.services import build_load_jobs
from han_solo.errors import HanSoloError
from han_solo.runs.periods import find_period
from han_solo.runs.service import JobRuns
from han_solo.settings import Settings
from tests.integration.guard_fixtures import GuardWorld
from tests.integration.job_fixtures import build_job

UTC = ZoneInfo("UTC")


async def fail(_context: Any) -> dict[str, object]:
    raise HanSoloError("The agent wrote nothing.")


async def succeed(_context: Any) -> dict[str, object]:
    return {}


class Later(Clock):
    """A clock that shows the time a while after the last due time."""

    def __init__(self, after: timedelta) -> None:
        object.__setattr__(self, "after", after)

    def now(self) -> Any:
        due = find_period(build_job(succeed).when, Clock().now(), UTC)
        return due.due_at + self.after


async def replay(world: GuardWorld) -> None:
    settings = Settings(_env_file=None, timezone="UTC")
    db = world.lab.services.db
    sweep = build_job(fail, overdue_s=3600)

    def at(minutes: int, *, run_due: Any = None) -> None:
        clock = Later(timedelta(minutes=minutes))
        world.services = dataclasses.replace(
            world.services,
            clock=clock,
            load_jobs=build_load_jobs(db, [sweep], settings.zone, clock),
            run_due=run_due,
        )

    async def run(function: Any) -> str:
        services = JobServices(
            settings=settings,
            db=db,
            runs=JobRuns(db),
            zone=settings.zone,
            open_agent=None,  # type: ignore[arg-type]
            clock=world.services.clock,
        )
        spec = dataclasses.replace(sweep, function=function)
        await run_job(services, spec, started_by="person")
        return "It was run."

    async with db.transaction() as connection:  # an installation of long ago
        await connection.execute("UPDATE han_solo.migrations SET applied_at = '2026-01-01'")
    at(30)
    assert await world.check("job_freshness") == (), "it may take its time"
    at(90)
    owed = await world.run("job_freshness", repair=False)
    assert [(row.key, row.severity) for row in owed.findings] == [("sweep", "warning")]
    assert "It never ran" in owed.findings[0].summary

    await run(fail)
    failed = await world.run("job_freshness", repair=False)
    assert [row.severity for row in failed.findings] == ["critical"]
    assert "The agent wrote nothing" in failed.findings[0].summary

    await JobRuns(db).set_pause(paused=True, by="scott")
    assert await world.check("job_freshness") == (), "nothing is owed while jobs are paused"
    await JobRuns(db).set_pause(paused=False, by="scott")
    at(91, run_due=lambda _job: run(succeed))
    repaired = await world.run("job_freshness")
    assert repaired.outcome == "repaired"
    assert repaired.resolved == ("sweep",)
