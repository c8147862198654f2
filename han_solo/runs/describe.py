"""How the jobs stand, as JSON values: for the bridge's route and for ``jobs list --json``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from ..declare import Daily, JobSpec, When
from .model import JobRun, Pause
from .periods import Period, find_next, find_period
from .service import JobRuns


@dataclass(frozen=True, slots=True)
class JobState:
    """One job, and how it stands."""

    spec: JobSpec
    due: Period
    next_due: Period
    last: JobRun | None
    last_success: JobRun | None
    installed_at: datetime

    @property
    def is_done(self) -> bool:
        return self.last_success is not None and self.last_success.period == self.due.name

    def is_overdue(self, now: datetime) -> bool:
        """Say whether its success is missing for longer than the job allows."""
        if self.is_done or self.is_running(now) or self.due.due_at < self.installed_at:
            return False
        return (now - self.due.due_at).total_seconds() > self.spec.overdue_s

    def is_running(self, now: datetime) -> bool:
        """Say whether it runs now, and its process lives."""
        return self.last is not None and self.last.outcome is None and self.last.lease_until > now

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "name": self.spec.name,
            "when": describe_when(self.spec.when),
            "due_at": self.due.due_at.isoformat(),
            "is_done": self.is_done,
            "next_due_at": self.next_due.due_at.isoformat(),
            "last": run_json(self.last) if self.last else None,
            "last_success": run_json(self.last_success) if self.last_success else None,
        }


async def load_state(runs: JobRuns, spec: JobSpec, now: datetime, zone: ZoneInfo) -> JobState:
    """Read how a job stands."""
    return JobState(
        spec=spec,
        due=find_period(spec.when, now, zone),
        next_due=find_next(spec.when, now, zone),
        last=await runs.find_last(spec.name),
        last_success=await runs.find_last(spec.name, "succeeded"),
        installed_at=await runs.load_installed_at(),
    )


async def describe_jobs(
    runs: JobRuns, jobs: Iterable[JobSpec], now: datetime, zone: ZoneInfo
) -> dict[str, object]:
    """Return the pause and every job as JSON values."""
    return {
        "paused": pause_json(await runs.load_pause()),
        "jobs": [(await load_state(runs, spec, now, zone)).to_json() for spec in jobs],
    }


def run_json(row: JobRun) -> dict[str, object]:
    """Return a run as JSON values; its traceback is for the terminal of the operator alone."""
    return {
        "id": row.id,
        "job": row.job,
        "period": row.period,
        "due_at": row.due_at.isoformat(),
        "attempt": row.attempt,
        "started_by": row.started_by,
        "holder": row.holder,
        "started_at": row.started_at.isoformat(),
        "finished_at": row.finished_at.isoformat() if row.finished_at else None,
        "outcome": row.outcome,
        "evidence": row.evidence,
        "error": row.error,
    }


def pause_json(pause: Pause) -> dict[str, object]:
    """Return the pause as JSON values."""
    return {
        "is_paused": pause.is_paused,
        "since": pause.since.isoformat() if pause.since else None,
        "by": pause.by,
        "reason": pause.reason,
    }


def describe_when(when: When) -> str:
    """Say when a job is due."""
    return f"daily {when.at}" if isinstance(when, Daily) else f"hourly :{when.minute:02}"
