"""Jobs and their runs as people and scripts read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from rich.table import Table

from ..declare import Daily, JobSpec, When
from ..runs.model import Declined, Finished, JobRun, Pause
from ..runs.periods import Period, find_next, find_period
from ..runs.service import JobRuns
from . import run

_STYLES = {"succeeded": "green", "failed": "red", "timed_out": "red", "abandoned": "yellow"}


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job, and how it stands."""

    spec: JobSpec
    due: Period
    next_due: Period
    last: JobRun | None
    last_success: JobRun | None

    @property
    def is_done(self) -> bool:
        return self.last_success is not None and self.last_success.period == self.due.name

    def to_json(self) -> dict[str, Any]:
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


async def load_row(runs: JobRuns, spec: JobSpec, now: datetime, zone: ZoneInfo) -> JobRow:
    """Read how a job stands."""
    return JobRow(
        spec=spec,
        due=find_period(spec.when, now, zone),
        next_due=find_next(spec.when, now, zone),
        last=await runs.find_last(spec.name),
        last_success=await runs.find_last(spec.name, "succeeded"),
    )


def build_table(rows: Iterable[JobRow], zone: ZoneInfo) -> Table:
    """Build the table of all jobs."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("job", "due", "next", "last run", "came to"):
        table.add_column(name, overflow="fold")
    for row in rows:
        last = row.last
        table.add_row(
            row.spec.name,
            describe_when(row.spec.when),
            local(row.next_due.due_at, zone),
            local(last.started_at, zone) if last else "never",
            f"[{_STYLES.get(last.outcome or '', 'cyan')}]{last.outcome or 'runs now'}[/]"
            + (f", for {last.period}" if last else "")
            if last
            else "",
        )
    return table


def build_history(runs: Sequence[JobRun], zone: ZoneInfo) -> Table:
    """Build the table of runs."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("started", "job", "for", "came to", "what it shows"):
        table.add_column(name, overflow="fold")
    for row in runs:
        shown = row.error or (json.dumps(row.evidence) if row.evidence else "")
        outcome = row.outcome or "runs now"
        table.add_row(
            local(row.started_at, zone),
            row.job,
            row.period,
            f"[{_STYLES.get(outcome, 'cyan')}]{outcome}[/]",
            shown.replace("[", r"\["),
        )
    return table


def show_result(result: Finished | Declined) -> None:
    """Say in a sentence what came of a run."""
    if isinstance(result, Declined):
        run.out().print(result.sentence, soft_wrap=True, markup=False)
        return
    done = result.run
    if result.is_lost:
        text = (
            f"The job {done.job} lost its lease and was stopped: another process took it for dead "
            "and its outcome counts. `han-solo jobs history` shows it."
        )
        run.err().print(text, soft_wrap=True, style="red")
    elif done.outcome == "succeeded":
        run.out().print(f"The job {done.job} succeeded for {done.period}.", soft_wrap=True)
        for name, value in (done.evidence or {}).items():
            shown = value if isinstance(value, str) else json.dumps(value)
            run.out().print(f"  {name}: {shown}", soft_wrap=True, markup=False)
    else:
        came = _WORDS[done.outcome or "failed"]
        text = f"The job {done.job} {came} for {done.period}: {done.error}"
        run.err().print(text, soft_wrap=True, style="red", markup=False)


_WORDS = {"failed": "failed", "timed_out": "ran out of time", "abandoned": "was abandoned"}


def exit_code(result: Finished | Declined) -> int:
    """Return 0 unless the job failed, or needs a person."""
    if isinstance(result, Declined):
        return run.EXIT_FAILED if result.why == "needs_a_person" else 0
    return 0 if result.run.outcome == "succeeded" and not result.is_lost else run.EXIT_FAILED


def result_json(result: Finished | Declined) -> dict[str, Any]:
    """Return what came of a run as JSON values."""
    if isinstance(result, Declined):
        return {"ran": False, "why": result.why, "sentence": result.sentence}
    return {"ran": True, "lost": result.is_lost, "run": run_json(result.run)}


def run_json(row: JobRun) -> dict[str, Any]:
    """Return a run as JSON values."""
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


def pause_json(pause: Pause) -> dict[str, Any]:
    """Return the pause as JSON values."""
    return {
        "is_paused": pause.is_paused,
        "since": pause.since.isoformat() if pause.since else None,
        "by": pause.by,
        "reason": pause.reason,
    }


def pause_sentence(pause: Pause, zone: ZoneInfo) -> str:
    """Say how the pause stands."""
    if not pause.is_paused:
        return "Jobs are on; what was due meanwhile runs at the next tick."
    since = local(pause.since, zone) if pause.since else "an unknown time"
    why = f" ({pause.reason})" if pause.reason else ""
    return f"Jobs are paused since {since} by {pause.by}{why}. `han-solo jobs resume` ends it."


def describe_when(when: When) -> str:
    """Say when a job is due."""
    return f"daily {when.at}" if isinstance(when, Daily) else f"hourly :{when.minute:02}"


def local(moment: datetime, zone: ZoneInfo) -> str:
    """Return a time in the zone of the jobs."""
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M")
