"""When a job that failed runs again by itself, and when it waits for a person."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

from han_solo.runs.model import JobRun
from han_solo.runs.service import consider
from tests.integration.job_fixtures import build_job

NIGHT = datetime(2026, 12, 1, 4, 0, tzinfo=UTC)
RUN = JobRun(
    id=1,
    job="sweep",
    period="2026-12-01",
    due_at=NIGHT,
    is_extra=False,
    attempt=1,
    started_by="schedule",
    holder="here",
    started_at=NIGHT,
    heartbeat_at=NIGHT,
    lease_until=NIGHT,
    finished_at=NIGHT,
    outcome="failed",
    may_run_again=True,
    evidence=None,
    error="Letta does not answer.",
    traceback=None,
)


async def nothing(_context):
    return {}


def ask(*runs, after=timedelta(0), started_by="schedule", again=False):
    return consider(build_job(nothing), runs, started_by, again, NIGHT + after)


def test_a_first_run_starts():
    assert ask() is None


def test_a_failure_waits_before_it_is_tried_again():
    assert ask(RUN, after=timedelta(minutes=9)).why == "waiting"
    assert ask(RUN, after=timedelta(minutes=10)) is None


def test_the_pause_doubles_up_to_two_hours():
    assert ask(RUN, RUN, after=timedelta(minutes=19)).why == "waiting"
    assert ask(RUN, RUN, after=timedelta(minutes=20)) is None
    assert ask(RUN, RUN, RUN, RUN, RUN, after=timedelta(minutes=119)).why == "waiting"
    assert ask(RUN, RUN, RUN, RUN, RUN, after=timedelta(minutes=120)) is None


def test_after_six_failures_a_person_is_needed():
    assert ask(*[RUN] * 6, after=timedelta(days=1)).why == "needs_a_person"


def test_what_may_do_harm_is_not_repeated_by_itself():
    last = dataclasses.replace(RUN, may_run_again=False)

    assert ask(last, after=timedelta(days=1)).why == "needs_a_person"
    assert ask(last, started_by="person") is None


def test_a_run_whose_process_died_is_repeated_at_once():
    assert ask(dataclasses.replace(RUN, outcome="abandoned")) is None


def test_a_success_is_done_unless_a_person_says_again():
    done = dataclasses.replace(RUN, outcome="succeeded", error=None, evidence={})

    assert ask(done).why == "done"
    assert ask(done, started_by="person").why == "done"
    assert ask(done, started_by="person", again=True) is None
