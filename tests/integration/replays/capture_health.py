"""The capture fails run after run, then sees nothing; each time somebody is told why."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from han_solo.clock import Clock
from han_solo.daemon.jobs import JobServices, run_job
from han_solo.daemon.services import build_load_capture
from han_solo.errors import HanSoloError
from han_solo.runs.service import JobRuns
from han_solo.settings import Settings
from han_solo.transcripts.ingest import sync
from tests.integration.guard_fixtures import GuardWorld
from tests.integration.job_fixtures import build_job
from tests.unit.transcript_lines import GOOD, join


async def fail(_context: Any) -> dict[str, object]:
    raise HanSoloError("The disk can not be read.")


async def succeed(_context: Any) -> dict[str, object]:
    return {}


async def replay(world: GuardWorld) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await _replay(world, Path(folder) / "projects")


async def _replay(world: GuardWorld, root: Path) -> None:
    db, clock = world.lab.services.db, Clock()
    project = root / "-srv-demo"
    project.mkdir(parents=True)
    settings = Settings(
        _env_file=None, timezone="UTC", transcripts=(root,), transcripts_excluded=("-srv-secret",)
    )
    world.services = dataclasses.replace(
        world.services, load_capture=build_load_capture(settings, db, clock, "here")
    )
    runs = JobRuns(db, clock)
    spec = dataclasses.replace(build_job(succeed), name="transcripts")

    async def keys() -> list[str]:
        return [finding.key for finding in await world.check("capture_health")]

    async def run(function: Any) -> None:
        services = JobServices(
            settings=settings,
            db=db,
            runs=runs,
            zone=settings.zone,
            open_agent=None,  # type: ignore[arg-type]
            clock=clock,
        )
        await run_job(services, dataclasses.replace(spec, function=function), started_by="person")

    def write(path: Path, hours_ago: float) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(join(*GOOD[:2]))
        at = (clock.now() - timedelta(hours=hours_ago)).timestamp()
        os.utime(path, (at, at))

    assert await keys() == [], "a machine without transcripts is well"
    write(project / "new.jsonl", 1)
    write(root / "-srv-secret" / "old.jsonl", 9)
    assert await keys() == [], "the next run reads it; what is excluded is nobody's"
    write(project / "left.jsonl", 9)
    left = await world.run("capture_health")
    assert [(row.key, row.severity) for row in left.findings] == [("waiting", "warning")]
    assert "1 of 2 transcripts" in left.findings[0].summary
    assert str(project / "left.jsonl") in left.findings[0].summary
    await sync(db, [root], excluded=settings.transcripts_excluded, machine="here", clock=clock)
    assert (await world.run("capture_health")).resolved == ("waiting",)

    for _ in range(2):
        await run(fail)
    assert await keys() == [], "twice may be a database that was away"
    await run(fail)
    (failing,) = (await world.run("capture_health")).findings
    assert (failing.key, failing.severity) == ("failures", "critical")
    assert "last 3 runs of the job transcripts failed" in failing.summary
    assert "The disk can not be read." in failing.summary
    await runs.set_pause(paused=True, by="scott")
    assert await keys() == [], "while jobs are paused nobody looks"
    await runs.set_pause(paused=False, by="scott")
    await run(succeed)
    assert (await world.run("capture_health")).resolved == ("failures",)

    root.rename(root.with_name("moved"))
    (moved,) = await world.check("capture_health")
    assert moved.key == "roots"
    assert str(root) in moved.summary
    assert "2 files" in moved.summary
