"""What a timer is told to run does run: from nothing, elsewhere, on the real Postgres."""

from __future__ import annotations

import asyncio
import json
import os
import plistlib
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from han_solo.runs.service import JobRuns
from tests.integration.store_fixtures import migrated

JOB = '''"""A job of a test."""

import asyncio

from han_solo import Daily, Evidence, JobContext, job


@job(when=Daily("00:00"), timeout_s=60, repeatable=True)
async def {name}(context: JobContext) -> Evidence:
    """Say where it runs."""
    import os
    await asyncio.sleep({sleep_s})
    return {{"directory": os.getcwd(), "variables": sorted(os.environ)}}
'''


class World:
    """An installation with jobs of its own; commands are run as an operator would."""

    def __init__(self, root: Path, database_url: str) -> None:
        self.root = root
        self.home = root / "home"
        jobs = root / "own" / "jobs"
        jobs.mkdir(parents=True)
        for name, sleep_s in (("sweep", 0), ("linger", 60)):
            (jobs / f"{name}.py").write_text(JOB.format(name=name, sleep_s=sleep_s))
        self.environment = {
            "HAN_SOLO_HOME": str(self.home),
            "HAN_SOLO_EXTENSIONS": "own",  # made absolute: the job runs elsewhere
            "HAN_SOLO_DATABASE_URL": database_url,
            "HAN_SOLO_TIMEZONE": "UTC",
            "PATH": "/usr/bin:/bin",
        }

    def call(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "han_solo", *arguments],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def load_plist(self, job: str) -> dict:
        self.call("launchd", "render", job, "--to", str(self.root / "plists"))
        path = self.root / "plists" / f"han-solo.job.{job}.plist"
        return plistlib.loads(path.read_bytes())


@pytest.fixture
async def world(tmp_path, database_url):
    async with migrated(database_url) as db, db.transaction() as connection:
        # An installation of long ago owes all its jobs.
        await connection.execute("UPDATE han_solo.migrations SET applied_at = '2026-01-01'")
    return World(tmp_path, database_url)


async def load_last(database_url, job):
    async with migrated(database_url) as db:
        return await JobRuns(db).find_last(job)


async def test_the_line_runs_in_an_empty_environment_from_another_directory(world, database_url):
    line = world.call("launchd", "render", "sweep", "--command").strip()
    assert "password" not in line
    assert database_url not in line

    first = subprocess.run(shlex.split(line), cwd="/", env={}, check=False, capture_output=True)
    again = subprocess.run(shlex.split(line), cwd="/", env={}, check=False, capture_output=True)

    assert first.returncode == 0, first.stderr
    run = await load_last(database_url, "sweep")
    assert (run.outcome, run.attempt, run.started_by) == ("succeeded", 1, "schedule")
    assert run.evidence["directory"] == "/"
    assert again.returncode == 0, "it is woken more often than it is due"
    assert b"is done for" in again.stdout


async def test_a_plist_runs_as_launchd_runs_it_and_its_output_is_in_its_log(world, database_url):
    plist = world.load_plist("sweep")
    done = subprocess.run(
        plist["ProgramArguments"],
        cwd=plist["WorkingDirectory"],
        env=plist["EnvironmentVariables"],
        check=False,
        capture_output=True,
    )
    log = Path(plist["StandardOutPath"]).read_text()
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), log
    assert "The job sweep succeeded" in log
    events = [json.loads(line)["event"] for line in log.splitlines() if line.startswith("{")]
    assert events == ["job.run_started", "job.run_finished"]
    run = await load_last(database_url, "sweep")
    assert run.evidence["directory"] == str(world.home)
    assert set(plist["EnvironmentVariables"]) <= set(run.evidence["variables"])
    assert "HAN_SOLO_DATABASE_URL" not in run.evidence["variables"]


async def test_without_a_database_the_exit_code_is_2_and_the_log_has_one_sentence(world):
    world.environment["HAN_SOLO_DATABASE_URL"] = "postgresql://u:p@127.0.0.1:1/none"
    plist = world.load_plist("sweep")
    done = subprocess.run(
        plist["ProgramArguments"], cwd="/", env=plist["EnvironmentVariables"], check=False
    )
    log = Path(plist["StandardOutPath"]).read_text()
    assert done.returncode == 2
    assert log.startswith("error: ")
    assert "Traceback" not in log


async def test_a_job_that_is_asked_to_end_gives_its_lease_back(world, database_url):
    plist = world.load_plist("linger")
    process = await asyncio.create_subprocess_exec(
        *plist["ProgramArguments"], cwd="/", env=plist["EnvironmentVariables"]
    )
    async with migrated(database_url) as db:
        while (run := await JobRuns(db).find_running("linger")) is None:
            assert process.returncode is None
            await asyncio.sleep(0.1)
        os.kill(process.pid, signal.SIGTERM)
        assert await process.wait() == 143
        run = await JobRuns(db).find_last("linger")
    assert (run.outcome, run.may_run_again) == ("abandoned", True)
    assert "was asked to end" in Path(plist["StandardOutPath"]).read_text()
