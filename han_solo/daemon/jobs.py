"""Run jobs: take the lease, keep it, run, close the run with what came of it.

Who calls: ``han-solo jobs run`` at a terminal or from launchd, and the daemon where nothing else
wakes the jobs. Postgres is the truth: no lease, no run. A run whose lease was lost is stopped at
once, since another may have begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from .. import logs
from ..clock import Clock
from ..declare import Evidence, JobSpec
from ..errors import DatabaseUnavailable, HanSoloError
from ..job_context import JobContext, OpenAgent, Tell
from ..runs.model import HEARTBEAT_S, Declined, Finished, JobRun, Outcome, StartedBy
from ..runs.periods import find_period
from ..runs.service import JobRuns
from ..settings import Settings
from ..store.database import Database

FINISH_S: Final = 120.0
"""How long the outcome of a run is tried to be stored while Postgres is away."""

_RETRY_S: Final = 2.0
_log = logs.get("jobs")


@dataclass(frozen=True, slots=True)
class JobServices:
    """What jobs run on."""

    settings: Settings
    db: Database
    runs: JobRuns
    zone: ZoneInfo
    open_agent: OpenAgent
    clock: Clock
    heartbeat_s: float = HEARTBEAT_S


async def run_job(
    services: JobServices,
    spec: JobSpec,
    *,
    started_by: StartedBy,
    again: bool = False,
    tell: Tell = lambda _sentence: None,
) -> Finished | Declined:
    """Run a job for the period that is due now, unless there is a reason not to.

    Args:
        services: what it runs on.
        spec: the job.
        started_by: the schedule keeps to the pause and to what a failure forbids; a person may
            run it all the same.
        again: once more although the period has its success.
        tell: shows a person what is going on.

    Raises:
        DatabaseUnavailable: no lease could be had, so nothing was run; or the outcome could not be
            stored, and the run will count as abandoned.
    """
    period = find_period(spec.when, services.clock.now(), services.zone)
    started = await services.runs.start(
        spec, period, holder=_holder(), started_by=started_by, again=again
    )
    if isinstance(started, Declined):
        _log.debug("job.run_declined", job=spec.name, why=started.why)
        return started
    return await _Running(services, spec, started, tell).run()


async def run_due_jobs(
    services: JobServices, jobs: Iterable[JobSpec]
) -> tuple[Finished | Declined, ...]:
    """Run every job that is due and has not succeeded, one after the other."""
    return tuple([await run_job(services, spec, started_by="schedule") for spec in jobs])


class _LeaseLost(Exception):
    """Another process took this run for dead."""


class _Running:
    def __init__(self, services: JobServices, spec: JobSpec, run: JobRun, tell: Tell) -> None:
        self._services = services
        self._spec = spec
        self._run = run
        self._tell = tell

    async def run(self) -> Finished:
        context = JobContext(
            run=self._run,
            settings=self._services.settings,
            db=self._services.db,
            clock=self._services.clock,
            zone=self._services.zone,
            open_agent=self._services.open_agent,
            tell=self._tell,
        )
        spec = self._spec
        _log.info("job.run_started", job=spec.name, period=self._run.period, run_id=self._run.id)
        work = asyncio.ensure_future(_call(spec, context))
        beat = asyncio.create_task(self._keep_lease(work))
        try:
            done, _ = await asyncio.wait({work}, timeout=spec.timeout_s)
            if not done:
                await _cancel(work)
                return await self._close(
                    "timed_out",
                    error=f"It was stopped after {spec.timeout_s:g} s, the most that it may take.",
                    may_run_again=spec.is_repeatable,
                )
            return await self._close_by(work)
        except asyncio.CancelledError:
            await _cancel(work)
            with contextlib.suppress(HanSoloError):
                await asyncio.shield(
                    self._close("abandoned", error="It was stopped before it was done.")
                )
            raise
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)

    async def _close_by(self, work: asyncio.Future[Evidence]) -> Finished:
        try:
            evidence = work.result()
        except asyncio.CancelledError:
            return Finished(self._run, is_lost=True)
        except HanSoloError as error:
            return await self._close(
                "failed",
                error=str(error),
                text=traceback.format_exc(),
                may_run_again=self._spec.is_repeatable or error.retryable,
            )
        except Exception as error:  # noqa: BLE001 - a loop's edge: recorded with its traceback
            _log.exception("job.fault", job=self._spec.name)
            return await self._close(
                "failed",
                error=f"A fault in the job itself: {type(error).__name__}: {error}",
                text=traceback.format_exc(),
                may_run_again=self._spec.is_repeatable,
            )
        return await self._close("succeeded", evidence=evidence)

    async def _close(
        self,
        outcome: Outcome,
        *,
        evidence: Evidence | None = None,
        error: str | None = None,
        text: str | None = None,
        may_run_again: bool = True,
    ) -> Finished:
        deadline = time.monotonic() + FINISH_S
        while True:
            try:
                closed = await self._services.runs.finish(
                    self._run,
                    outcome,
                    may_run_again=may_run_again,
                    evidence=evidence,
                    error=error,
                    traceback=text,
                )
                break
            except DatabaseUnavailable:
                if time.monotonic() > deadline:
                    raise
                await self._services.clock.sleep(_RETRY_S)
        finished = Finished(closed or self._run, is_lost=closed is None)
        log = _log.info if outcome == "succeeded" else _log.error
        log(
            "job.run_finished",
            job=self._spec.name,
            period=self._run.period,
            run_id=self._run.id,
            outcome="lost" if finished.is_lost else outcome,
            reason=error,
        )
        return finished

    async def _keep_lease(self, work: asyncio.Future[Evidence]) -> None:
        """Renew the lease; when it is lost, or Postgres is away for as long as it lasts, stop."""
        held_until = time.monotonic() + self._services.runs.lease_s
        while True:
            await self._services.clock.sleep(self._services.heartbeat_s)
            try:
                if not await self._services.runs.renew(self._run):
                    break
                held_until = time.monotonic() + self._services.runs.lease_s
            except DatabaseUnavailable as error:
                _log.warning("job.heartbeat_failed", job=self._spec.name, reason=str(error))
                if time.monotonic() > held_until:
                    break
        _log.error("job.lease_lost", job=self._spec.name, run_id=self._run.id)
        work.cancel()


class JobFault(Exception):
    """What a job did that no job may do: its own fault, and not the daemon's."""


async def _call(spec: JobSpec, context: JobContext) -> Evidence:
    """Call the job; what it may not do becomes an error of its own.

    A ``SystemExit`` in a task would end the loop, and with it the daemon.
    """
    try:
        evidence = await spec.function(context)
    except SystemExit as error:
        raise JobFault(f"it called for the end of the whole process ({error!r})") from error
    try:
        json.dumps(evidence)
    except (TypeError, ValueError) as error:
        raise JobFault(f"what it returned is no JSON: {error}") from error
    if not isinstance(evidence, Mapping):
        raise JobFault(f"it returned a {type(evidence).__name__} and no mapping")
    return evidence


async def _cancel(work: asyncio.Future[Evidence]) -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def _holder() -> str:
    return f"{socket.gethostname()} process {os.getpid()}"
