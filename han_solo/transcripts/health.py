"""How the reading of transcripts goes: what is on the disk and was not read, and runs that failed.

A sync that succeeds tells nothing of what it did not see: a directory that was moved, or a file
that it can not open. So the disk is compared with what the database says was read.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from ..store.database import Database
from .discover import Found, discover
from .known import KnownFile
from .queries import QUERIES

LATE = timedelta(hours=3)
"""The job runs each hour; what has not been read after that was left out."""


class Run(Protocol):
    """A run of a job, as far as it matters here."""

    @property
    def outcome(self) -> str | None: ...
    @property
    def error(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class CaptureHealth:
    """What is known of the transcripts of this machine.

    ``waiting`` files changed longer than ``LATE`` ago and were not read since, the first of them at
    ``oldest_at``; ``example`` is one. ``missing_roots`` are directories that are not there, though
    files were read on this machine before. ``failures`` runs in a row did not succeed.
    """

    files: int
    known: int
    waiting: int
    oldest_at: datetime | None
    example: str | None
    missing_roots: tuple[str, ...]
    failures: int
    last_error: str | None
    last_read_at: datetime | None


async def look_at_capture(
    db: Database,
    roots: Sequence[Path],
    *,
    excluded: Sequence[str],
    load_runs: Callable[[], Awaitable[Sequence[Run]]],
    now: datetime,
    machine: str | None = None,
) -> CaptureHealth:
    """Compare the disk with what was read.

    Args:
        db: the database.
        roots: as for ``sync``.
        excluded: as for ``sync``.
        load_runs: reads the last runs of the job, the newest first.
        now: the time.
        machine: this machine's name; its own by default.
    """
    found = await asyncio.to_thread(lambda: list(discover(roots, excluded)))
    async with db.connection() as connection:
        rows = QUERIES.list_files(connection, machine=machine or socket.gethostname())
        known = {row["path"]: KnownFile.of(row) async for row in rows}
        totals = await QUERIES.fetch_totals(connection)
    waiting = [each for each in found if _is_late(each, known.get(each.path), now)]
    oldest = min(waiting, key=lambda each: each.changed_ns, default=None)
    there = [root.expanduser().is_dir() for root in roots]
    failures, error = _count_failures(await load_runs())
    return CaptureHealth(
        files=len(found),
        known=len(known),
        waiting=len(waiting),
        oldest_at=_time(oldest) if oldest else None,
        example=oldest.path.encode(errors="backslashreplace").decode() if oldest else None,
        missing_roots=tuple(
            str(root) for root, is_there in zip(roots, there, strict=True) if not is_there
        )
        if known
        else (),
        failures=failures,
        last_error=error,
        last_read_at=totals["last_read_at"],
    )


def _is_late(found: Found, known: KnownFile | None, now: datetime) -> bool:
    if now - _time(found) < LATE:
        return False
    return known is None or not known.is_as_it_was(found)


def _time(found: Found) -> datetime:
    return datetime.fromtimestamp(found.changed_ns / 1e9, UTC)


def _count_failures(runs: Sequence[Run]) -> tuple[int, str | None]:
    """Return how many of the last runs failed in a row, and why the last one did."""
    failures = 0
    error: str | None = None
    for run in runs:
        if run.outcome is None:
            continue
        if run.outcome == "succeeded":
            break
        error = error or run.error
        failures += 1
    return failures, error
