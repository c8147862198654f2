"""The guard against transcripts that do not come in any more."""

from __future__ import annotations

from typing import Final

from han_solo import CheckContext, Finding, guard

MOST_FAILURES: Final = 3
"""In a row: one or two may be a database that was away."""


@guard(every_s=900, incident="capture-stopped")
async def capture_health(context: CheckContext) -> tuple[Finding, ...]:
    """Find runs that fail one after the other, and transcripts that nobody reads.

    While jobs are paused nothing is looked at. A machine without transcripts is well.
    """
    health = await context.capture()
    if health is None:
        return ()
    found: list[Finding] = []
    if health.failures >= MOST_FAILURES:
        found.append(
            Finding(
                key="failures",
                summary=f"The last {health.failures} runs of the job transcripts failed. The last: "
                f"{health.last_error or 'it gave no reason.'}",
                hint="Mend the cause, then: han-solo jobs run transcripts",
                severity="critical",
                detail={"failures": health.failures},
            )
        )
    if health.waiting:
        one = health.waiting == 1
        found.append(
            Finding(
                key="waiting",
                summary=f"{health.waiting:,} of {health.files:,} transcripts on this machine "
                f"changed and {'was' if one else 'were'} not read since, the first at "
                f"{health.oldest_at:%Y-%m-%d %H:%M} UTC: {health.example}",
                hint="See why: han-solo transcripts sync",
                severity="warning",
                detail={"waiting": health.waiting, "files": health.files},
            )
        )
    if health.missing_roots:
        found.append(
            Finding(
                key="roots",
                summary=f"There is no directory {', '.join(health.missing_roots)}, from which "
                f"transcripts were read before ({health.known:,} files).",
                hint="Set HAN_SOLO_TRANSCRIPTS to where they are now.",
                severity="warning",
                detail={"roots": list(health.missing_roots), "known": health.known},
            )
        )
    return tuple(found)
