"""Guards, findings and remedies as JSON values, for scripts and monitors."""

from __future__ import annotations

from datetime import datetime

from ..daemon.choice import Choice
from ..daemon.report import GuardReport
from ..findings.model import FindingRow, RemedyRow
from .guard_session import Row


def of_choice(choice: Choice) -> dict[str, object]:
    spec = choice.spec
    return {
        "name": spec.name,
        "mode": choice.mode,
        "mode_declared": spec.mode,
        "every_s": choice.every_s,
        "has_remedy": spec.remedy is not None,
        "incident": spec.incident,
        "description": spec.description,
        "source": spec.source,
    }


def of_row(row: Row) -> dict[str, object]:
    run = row.run
    return {
        **of_choice(row.choice),
        "last_run": None
        if run is None
        else {
            "finished_at": _time(run.finished_at),
            "looked_at": _time(run.looked_at),
            "duration_ms": run.duration_ms,
            "error": run.error,
        },
        "open": [of_finding(finding) for finding in row.open],
    }


def of_finding(row: FindingRow) -> dict[str, object]:
    return {
        "id": row.id,
        "guard": row.guard,
        "key": row.key,
        "severity": row.severity,
        "summary": row.summary,
        "hint": row.hint,
        "detail": dict(row.detail),
        "opened_at": _time(row.opened_at),
        "last_seen_at": _time(row.last_seen_at),
        "times_seen": row.times_seen,
        "alerted_at": _time(row.alerted_at),
        "resolved_at": _time(row.resolved_at),
    }


def of_report(report: GuardReport) -> dict[str, object]:
    remedy = report.remedy
    return {
        "guard": report.guard,
        "outcome": report.outcome,
        "findings": [of_finding(row) for row in report.findings],
        "opened": report.opened,
        "resolved": list(report.resolved),
        "remedy": remedy and {"outcome": remedy.outcome, "what": remedy.what},
        "error": report.error,
    }


def of_remedy(row: RemedyRow) -> dict[str, object]:
    return {
        "id": row.id,
        "guard": row.guard,
        "finding_ids": list(row.finding_ids),
        "epoch": row.epoch,
        "started_at": _time(row.started_at),
        "finished_at": _time(row.finished_at),
        "outcome": row.outcome,
        "what": row.what,
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
