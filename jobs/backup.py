"""The nightly backup: dumps of the databases and plain files of all that the store holds."""

from __future__ import annotations

from han_solo import Daily, Evidence, JobContext, job
from han_solo.backup.service import make_backup


@job(when=Daily("04:30"), timeout_s=3600, repeatable=True)
async def backup(context: JobContext) -> Evidence:
    """Make a backup, prove that it can be read, and keep the last ones."""
    made = await make_backup(context.settings, context.db, context.now)
    return {
        "path": str(made.path),
        "bytes": made.bytes,
        "rows": made.manifest["rows"],
        "not_included": made.manifest["not_included"],
    }
