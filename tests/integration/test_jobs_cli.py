"""``han-solo jobs`` as it is typed: what runs, what does not, with which words and exit code."""

from __future__ import annotations

import asyncio
import json

import pytest
from typer.testing import CliRunner

from han_solo.cli import main as cli
from tests.integration.job_fixtures import open_jobs

JOBS = '''\
"""A job of the test."""

from han_solo import Daily, Evidence, HanSoloError, JobContext, job


@job(when=Daily("00:00"), timeout_s=60)
async def {name}(context: JobContext) -> Evidence:
    """Do it."""
    {body}
'''


@pytest.fixture
async def type_(tmp_path, database_url, monkeypatch):
    async with open_jobs(database_url):  # an installation of long ago
        pass
    folder = tmp_path / "own" / "jobs"
    folder.mkdir(parents=True)
    bodies = {"sweep": 'return {"rows": 3}', "broken": 'raise HanSoloError("It is broken.")'}
    for name, body in bodies.items():
        (folder / f"{name}.py").write_text(JOBS.format(name=name, body=body))
    for name, value in {
        "HAN_SOLO_HOME": tmp_path / "home",
        "HAN_SOLO_DATABASE_URL": database_url,
        "HAN_SOLO_EXTENSIONS": tmp_path / "own",
        "HAN_SOLO_TIMEZONE": "UTC",
    }.items():
        monkeypatch.setenv(name, str(value))

    async def type_(*words):
        return await asyncio.to_thread(CliRunner().invoke, cli.build_app(), ["jobs", *words])

    return type_


async def test_a_job_runs_once_and_shows_its_evidence(type_):
    first = await type_("run", "sweep", "--if-due")
    second = await type_("run", "sweep", "--if-due")
    again = await type_("run", "sweep", "--again", "--json")

    assert (first.exit_code, second.exit_code, again.exit_code) == (0, 0, 0)
    assert "succeeded" in first.output
    assert "rows: 3" in first.output
    assert "is done for" in second.output
    assert json.loads(again.stdout)["run"]["evidence"] == {"rows": 3}


async def test_a_failure_is_a_sentence_an_exit_code_and_a_row(type_):
    failed = await type_("run", "broken", "--if-due")
    later = await type_("run", "broken", "--if-due")
    history = await type_("history", "broken", "--json")

    assert failed.exit_code == 1
    assert "The job broken failed" in failed.output
    assert "It is broken." in failed.output
    assert later.exit_code == 1, "a timer must not look well while a person is needed"
    assert "does not run again by itself" in later.output
    assert [row["outcome"] for row in json.loads(history.stdout)] == ["failed"]


async def test_a_pause_holds_the_timers_and_says_who_and_why(type_):
    paused = await type_("pause", "--reason", "moving house")
    held = await type_("run", "sweep", "--if-due")
    listed = await type_("list", "--json")
    on = await type_("resume")
    ran = await type_("run", "sweep", "--if-due")

    assert "moving house" in paused.output
    assert held.exit_code == 0
    assert "nothing was run" in held.output
    assert json.loads(listed.stdout)["paused"]["is_paused"]
    assert "Jobs are on" in on.output
    assert ran.exit_code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "sweeep"), "There is no job 'sweeep'."),
        (("history", "x"), "There is no job 'x'."),
        (("run", "sweep", "--if-due", "--again"), "contradict each other"),
    ],
)
async def test_what_can_not_be_done_is_a_sentence(type_, words, sentence):
    done = await type_(*words)

    assert done.exit_code == 2
    assert sentence in done.output


async def test_without_postgres_nothing_runs_and_the_exit_is_loud(type_, monkeypatch):
    monkeypatch.setenv("HAN_SOLO_DATABASE_URL", "postgresql://nobody:x@127.0.0.1:9/none")
    done = await type_("run", "sweep", "--if-due")

    assert done.exit_code != 0
    assert done.output.startswith("error: ")
