"""Jobs and their runs as people and scripts read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from rich.table import Table

from ..runs.describe import JobState, describe_when, run_json
from ..runs.model import Declined, Finished, JobRun, Pause
from . import run

_STYLES = {"succeeded": "green", "failed": "red", "timed_out": "red", "abandoned": "yellow"}


def build_table(rows: Iterable[JobState], zone: ZoneInfo) -> Table:
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
            f"[{_STYLES.get(last.outcome or '', 'cyan')}]{tell_outcome(last)}[/]"
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
        outcome = tell_outcome(row)
        table.add_row(
            local(row.started_at, zone),
            row.job,
            row.period,
            f"[{_STYLES.get(outcome, 'cyan')}]{outcome}[/]",
            shown.replace("[", r"\["),
        )
    return table


def tell_outcome(row: JobRun) -> str:
    """Say what came of a run; one whose lease ran out has no process any more."""
    if row.outcome is not None:
        return row.outcome
    return "runs now" if row.lease_until > datetime.now(UTC) else "abandoned"


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


def pause_sentence(pause: Pause, zone: ZoneInfo) -> str:
    """Say how the pause stands."""
    if not pause.is_paused:
        return "Jobs are on; what was due meanwhile runs at the next tick."
    since = local(pause.since, zone) if pause.since else "an unknown time"
    why = f" ({pause.reason})" if pause.reason else ""
    return f"Jobs are paused since {since} by {pause.by}{why}. `han-solo jobs resume` ends it."


def local(moment: datetime, zone: ZoneInfo) -> str:
    """Return a time in the zone of the jobs."""
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M")
