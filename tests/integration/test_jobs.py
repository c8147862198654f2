"""Jobs on the real Postgres: one at a time, one success a period, every other end by its name."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from han_solo.daemon.jobs import run_job
from han_solo.errors import HanSoloError
from han_solo.runs.model import Declined, Finished
from tests.integration.job_fixtures import build_job, open_jobs

ROOT = Path(__file__).resolve().parents[2]


async def succeed(_context: Any) -> dict[str, object]:
    return {"rows": 3}


async def test_a_run_that_succeeds_keeps_its_evidence_and_is_not_repeated(database_url):
    async with open_jobs(database_url) as services:
        first = await run_job(services, build_job(succeed), started_by="schedule")
        second = await run_job(services, build_job(succeed), started_by="schedule")
        by_hand = await run_job(services, build_job(succeed), started_by="person")
        history = await services.runs.history("sweep")

    assert isinstance(first, Finished)
    assert first.run.evidence == {"rows": 3}
    assert isinstance(second, Declined)
    assert isinstance(by_hand, Declined)
    assert {second.why, by_hand.why} == {"done"}
    assert len(history) == 1


async def test_what_was_due_before_the_installation_is_not_owed(database_url):
    async with open_jobs(database_url) as services:
        async with services.db.transaction() as connection:
            await connection.execute("UPDATE han_solo.migrations SET applied_at = now()")
        scheduled = await run_job(services, build_job(succeed), started_by="schedule")
        by_hand = await run_job(services, build_job(succeed), started_by="person")

    assert isinstance(scheduled, Declined)
    assert scheduled.why == "not_due"
    assert isinstance(by_hand, Finished)


async def test_a_person_may_have_it_once_more(database_url):
    async with open_jobs(database_url) as services:
        await run_job(services, build_job(succeed), started_by="schedule")
        once_more = await run_job(services, build_job(succeed), started_by="person", again=True)
        after = await run_job(services, build_job(succeed), started_by="schedule")

    assert isinstance(once_more, Finished)
    assert once_more.run.is_extra
    assert isinstance(after, Declined)


async def test_starts_at_the_same_time_make_one_run(database_url):
    began = []

    async def slow(_context: Any) -> dict[str, object]:
        began.append(1)
        await asyncio.sleep(0.3)
        return {}

    async with open_jobs(database_url) as services:
        results = await asyncio.gather(
            *[run_job(services, build_job(slow), started_by="schedule") for _ in range(14)]
        )

    assert len(began) == 1
    assert sum(isinstance(result, Finished) for result in results) == 1
    assert {result.why for result in results if isinstance(result, Declined)} <= {"running", "done"}


async def test_processes_that_start_at_the_same_time_make_one_run(database_url):
    """Fourteen, as when two machines wake and each has its timers fire at once."""
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.integration.job_starter",
            database_url,
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(14)
    ]
    said = [(await process.communicate())[0].decode().strip() for process in processes]
    connection = await asyncpg.connect(database_url)
    rows = await connection.fetch("SELECT outcome FROM han_solo.job_runs")
    await connection.close()

    assert said.count("succeeded") == 1
    assert [row["outcome"] for row in rows] == ["succeeded"]


async def test_a_killed_run_is_closed_when_its_lease_expires_and_the_next_does_it(database_url):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.integration.job_starter",
        database_url,
        "hang",
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert (await process.stdout.readline()).decode().strip() == "began"
    process.kill()
    await process.wait()

    async with open_jobs(database_url) as services:
        early = await run_job(services, build_job(succeed), started_by="schedule")
        async with asyncio.timeout(30):
            while isinstance(
                late := await run_job(services, build_job(succeed), started_by="schedule"), Declined
            ):
                await asyncio.sleep(0.1)
        history = await services.runs.history()

    assert isinstance(early, Declined)
    assert early.why == "running"
    assert isinstance(late, Finished)
    assert [run.outcome for run in history] == ["succeeded", "abandoned"]


async def test_a_failure_keeps_its_traceback_and_needs_a_person(database_url):
    async def fail(_context: Any) -> dict[str, object]:
        raise HanSoloError("The agent wrote nothing.", hint="Look at its tools.")

    async with open_jobs(database_url) as services:
        failed = await run_job(services, build_job(fail), started_by="schedule")
        again = await run_job(services, build_job(fail), started_by="schedule")
        by_hand = await run_job(services, build_job(succeed), started_by="person")

    assert isinstance(failed, Finished)
    assert failed.run.outcome == "failed"
    assert "The agent wrote nothing." in (failed.run.error or "")
    assert "HanSoloError" in (failed.run.traceback or "")
    assert isinstance(again, Declined)
    assert again.why == "needs_a_person"
    assert "han-solo jobs run sweep" in again.sentence
    assert isinstance(by_hand, Finished)


@pytest.mark.parametrize(("repeatable", "why"), [(False, "needs_a_person"), (True, "waiting")])
async def test_a_run_that_takes_too_long_is_stopped(repeatable, why, database_url):
    stopped = []

    async def hang(_context: Any) -> dict[str, object]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(1)
            raise
        return {}

    spec = build_job(hang, timeout_s=0.2, is_repeatable=repeatable)
    async with open_jobs(database_url) as services:
        result = await run_job(services, spec, started_by="schedule")
        after = await run_job(services, spec, started_by="schedule")

    assert isinstance(result, Finished)
    assert result.run.outcome == "timed_out"
    assert stopped
    assert isinstance(after, Declined)
    assert after.why == why


async def test_a_pause_keeps_the_schedule_and_not_a_person(database_url):
    async with open_jobs(database_url) as services:
        await services.runs.set_pause(paused=True, by="scott", reason="moving house")
        scheduled = await run_job(services, build_job(succeed), started_by="schedule")
        by_hand = await run_job(services, build_job(succeed), started_by="person")

    assert isinstance(scheduled, Declined)
    assert scheduled.why == "paused"
    assert "scott (moving house)" in scheduled.sentence
    assert isinstance(by_hand, Finished)


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        ({"x": object()}, "what it returned is no JSON"),
        ([1, 2], "it returned a list and no mapping"),
        (SystemExit(4), "it called for the end of the whole process"),
        (ValueError("seven"), "ValueError: seven"),
    ],
)
async def test_what_no_job_may_do_is_its_own_failure(returned, sentence, database_url):
    async def bad(_context: Any) -> Any:
        if isinstance(returned, BaseException):
            raise returned
        return returned

    async with open_jobs(database_url) as services:
        result = await run_job(services, build_job(bad), started_by="schedule")

    assert isinstance(result, Finished)
    assert result.run.outcome == "failed"
    assert sentence in (result.run.error or "")
    assert result.run.traceback


async def test_a_run_whose_lease_was_taken_is_stopped_and_does_not_count(database_url):
    began = asyncio.Event()

    async def slow(_context: Any) -> dict[str, object]:
        began.set()
        await asyncio.sleep(30)
        return {"late": True}

    async with open_jobs(database_url, heartbeat_s=0.05) as services:
        running = asyncio.create_task(run_job(services, build_job(slow), started_by="schedule"))
        await began.wait()
        async with services.db.transaction() as connection:
            await connection.execute(
                "UPDATE han_solo.job_runs SET finished_at = clock_timestamp(),"
                " outcome = 'abandoned', error = 'test'"
            )
        result = await running
        history = await services.runs.history()

    assert isinstance(result, Finished)
    assert result.is_lost
    assert [run.outcome for run in history] == ["abandoned"]


async def test_finished_runs_can_not_be_changed(database_url):
    async with open_jobs(database_url) as services:
        await run_job(services, build_job(succeed), started_by="schedule")
        for sql in (
            "UPDATE han_solo.job_runs SET evidence = '{}'",
            "DELETE FROM han_solo.job_runs",
            "TRUNCATE han_solo.job_runs",
        ):
            with pytest.raises(asyncpg.PostgresError):
                async with services.db.transaction() as connection:
                    await connection.execute(sql)
