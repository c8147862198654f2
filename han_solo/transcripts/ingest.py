"""Bring transcripts into Postgres: what is new in each file, once, with the place it was read to.

A piece of a file is copied into a table of the transaction's own, moved from there into the
records, and committed together with how far the file was read: a crash at any moment loses nothing
and doubles nothing. A file is known by device, inode, size and the bytes before that place; one
that was rewritten is read again from its beginning, and what is known already stays as it is.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from .. import logs
from ..clock import Clock
from ..store.database import Connection, Database
from . import pieces
from .discover import Found, discover
from .known import KnownFile, Mark
from .model import Parsed
from .queries import QUERIES
from .report import SyncReport
from .staging import COLUMNS, read_records

WORKERS: Final = 2
"""One parses while the other stores; Postgres takes in one piece at a time."""

STAGING: Final = "transcript_staging"

_log = logs.get("transcripts")


async def sync(
    db: Database,
    roots: Sequence[Path],
    *,
    excluded: Sequence[str] = (),
    machine: str | None = None,
    clock: Clock | None = None,
) -> SyncReport:
    """Bring what is new in the transcripts of this machine into Postgres.

    Args:
        db: the database.
        roots: directories with a folder for each project.
        excluded: names or patterns of projects that are not read.
        machine: this machine's name; its own by default.
        clock: the time.
    """
    began = time.monotonic()
    sync_ = _Sync(db, machine or socket.gethostname(), clock or Clock())
    await sync_.load()
    files = iter(await asyncio.to_thread(lambda: list(discover(roots, excluded))))
    workers = [asyncio.create_task(sync_.take(files)) for _ in range(WORKERS)]
    try:
        await asyncio.gather(*workers)  # not a group: what stops one is raised as it is
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    report = sync_.report
    report.duration_s = time.monotonic() - began
    _log.info("transcripts.synced", **{k: v for k, v in report.to_json().items() if k != "kinds"})
    return report


class _Sync:
    def __init__(self, db: Database, machine: str, clock: Clock) -> None:
        self._db = db
        self._machine = machine
        self._clock = clock
        self._known: dict[str, KnownFile] = {}
        self._storing = asyncio.Lock()
        self.report = SyncReport()

    async def load(self) -> None:
        """Load what is known of this machine's files."""
        async with self._db.connection() as connection:
            rows = QUERIES.list_files(connection, machine=self._machine)
            self._known = {row["path"]: KnownFile.of(row) async for row in rows}

    async def take(self, files: Iterator[Found]) -> None:
        """Read files until there are no more; workers share the iterator."""
        for found in files:
            await self.file(found)

    async def file(self, found: Found) -> None:
        """Read what is new in a file."""
        self.report.files += 1
        if not found.has_name:
            self._note_unreadable(found, "Its name is not UTF-8.")
            return
        known = self._known.get(found.path)
        if known is not None and known.is_as_it_was(found):
            return
        try:
            with Path(found.path).open("rb", buffering=0) as file:  # noqa: ASYNC230 local
                await self._read(found, known, file.fileno())
        except _Overtaken:
            _log.info("transcripts.file_read_elsewhere", path=found.path)
        except OSError as error:
            self._note_unreadable(found, str(error))

    def _note_unreadable(self, found: Found, reason: str) -> None:
        self.report.unreadable += 1
        path = found.path.encode(errors="backslashreplace").decode()
        _log.warning("transcripts.file_not_read", path=path, reason=reason)

    async def _read(self, found: Found, known: KnownFile | None, descriptor: int) -> None:
        self.report.read += 1
        if known is None or not known.goes_on_in(found, descriptor):
            known = await self._open(found)
        reading = asyncio.create_task(pieces.parse_next(descriptor, known.read_to))
        try:
            while (step := await asyncio.shield(reading)) is not None:
                if not step.is_end:  # parsed while Postgres takes in the one before
                    reading = asyncio.create_task(pieces.parse_next(descriptor, step.read_to))
                size = found.size if step.is_end else known.size
                changed_ns = found.changed_ns if step.is_end else known.changed_ns
                mark = Mark(step.read_to, step.tail, size, changed_ns)
                await self._store(found, known, step.parsed, mark)
                if step.is_end:
                    break
        finally:
            # A thread can not be stopped, and it reads the file that is closed after this.
            await asyncio.gather(reading, return_exceptions=True)

    async def _open(self, found: Found) -> KnownFile:
        async with self._db.transaction() as connection:
            row = await QUERIES.open_file(
                connection,
                machine=self._machine,
                path=found.path,
                device=found.device,
                inode=found.inode,
                read_at=self._clock.now(),
            )
        return KnownFile.of(row)

    async def _store(
        self,
        found: Found,
        known: KnownFile,
        parsed: Parsed,
        mark: Mark,
    ) -> None:
        """Store a piece and how far it goes, together."""
        async with self._storing, self._db.transaction() as connection:
            await QUERIES.take_turn(connection)
            new = 0
            if parsed.rows:
                new = await self._copy(connection, found, known, parsed)
            await self._note_damage(connection, known, parsed, self._clock.now())
            advanced = await QUERIES.advance_file(
                connection,
                id=known.id,
                read_from=known.read_to,
                read_to=mark.read_to,
                tail=mark.tail,
                size=mark.size,
                changed_ns=mark.changed_ns,
                read_at=self._clock.now(),
            )
            if advanced is None:
                raise _Overtaken
        known.read_to, known.tail = mark.read_to, mark.tail
        self._count(parsed, new)

    async def _copy(
        self, connection: Connection, found: Found, known: KnownFile, parsed: Parsed
    ) -> int:
        await QUERIES.make_staging(connection)
        await connection.copy_records_to_table(
            STAGING, records=read_records(found, parsed.rows), columns=COLUMNS
        )
        new = await QUERIES.take_staging(connection, file_id=known.id, generation=known.generation)
        await QUERIES.take_sessions(connection)
        await QUERIES.take_usage(connection)
        return new

    @staticmethod
    async def _note_damage(
        connection: Connection, known: KnownFile, parsed: Parsed, now: datetime
    ) -> None:
        positions: Counter[int] = Counter()  # of what is wrong at one place
        for damage in parsed.damage:
            position = positions[damage.offset]
            positions[damage.offset] += 1
            await QUERIES.note_damage(
                connection,
                file_id=known.id,
                generation=known.generation,
                file_offset=damage.offset,
                position=position,
                kind=damage.kind,
                raw=damage.raw,
                found_at=now,
            )

    def _count(self, parsed: Parsed, new: int) -> None:
        report = self.report
        report.bytes += parsed.consumed
        report.records += len(parsed.rows)
        report.new += new
        report.redacted += sum(row.redacted for row in parsed.rows)
        report.kinds += parsed.count_kinds()
        report.damage += parsed.count_damage()


class _Overtaken(Exception):
    """Another process read the file meanwhile; what it stored stands."""
