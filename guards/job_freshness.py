"""The guard against jobs that are owed and did not succeed."""

from __future__ import annotations

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.runs.describe import JobState


async def _run(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    done = [await context.run_due(finding.key) for finding in findings]
    return " ".join(done)


@guard(every_s=300, incident="job-did-not-run", mode="repair", remedy=_run)
async def job_freshness(context: CheckContext) -> tuple[Finding, ...]:
    """Find jobs whose last due run did not succeed in time, or failed for good.

    While jobs are paused nothing is owed; the pause itself is reported after a week.
    """
    found: list[Finding] = []
    for state in await context.jobs():
        last = state.last
        failed = (
            last is not None
            and last.period == state.due.name
            and last.outcome in {"failed", "timed_out"}
            and not last.may_run_again
        )
        if state.is_done or not (failed or state.is_overdue(context.now)):
            continue
        found.append(_build(context, state, failed=failed))
    return tuple(found)


def _build(context: CheckContext, state: JobState, *, failed: bool) -> Finding:
    last, name = state.last, state.spec.name
    late_h = (context.now - state.due.due_at).total_seconds() / 3600
    if last is None:
        why = "It never ran."
    elif last.outcome is None:
        why = f"It runs since {last.started_at:%Y-%m-%d %H:%M} UTC."
    else:
        why = f"Its last run, for {last.period}, {_WORDS[last.outcome]}: {last.error or 'well'}"
    success = state.last_success
    return Finding(
        key=name,
        summary=f"The job {name} is owed for {state.due.name}, since {late_h:.1f} h. {why}",
        hint=f"When its cause is mended: han-solo jobs run {name}",
        severity="critical" if failed else "warning",
        detail={
            "period": state.due.name,
            "due_at": state.due.due_at.isoformat(),
            "last_outcome": last.outcome if last else None,
            "last_success": success.period if success else None,
        },
    )


_WORDS = {
    "succeeded": "succeeded",
    "failed": "failed",
    "timed_out": "ran out of time",
    "abandoned": "was cut off",
}
