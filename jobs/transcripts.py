"""The hourly reading of Claude Code's transcripts on this machine."""

from __future__ import annotations

from han_solo import Evidence, Hourly, JobContext, job
from han_solo.transcripts.ingest import sync


@job(when=Hourly(minute=5), timeout_s=3000, repeatable=True)
async def transcripts(context: JobContext) -> Evidence:
    """Bring what is new in this machine's transcripts into the memory."""
    report = await sync(
        context.db,
        context.settings.transcripts,
        excluded=context.settings.transcripts_excluded,
        clock=context.clock,
    )
    return report.to_json()
