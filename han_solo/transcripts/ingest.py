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
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from .. import logs
from ..clock import Clock
from ..store.database import Connection, Database
from . import pieces
from .discover import Found, discover
from .model import QUARANTINED, Parsed, Row
from .queries import QUERIES

WORKERS: Final = 2
"""One parses while the other stores; Postgres takes in one piece at a time."""

COLUMNS: Final = (
    "session_id", "parent_id", "agent_id", "project", "file_offset", "kind", "subtype", "uuid",
    "parent_uuid", "at", "text", "raw", "digest", "message_id", "model", "input_tokens",
    "output_tokens", "cache_write_tokens", "cache_read_tokens",
)  # fmt: skip
STAGING: Final = "transcript_staging"

_log = logs.get("transcripts")


@dataclass(slots=True)
class SyncReport:
    """What a sync did, in figures; ``new`` rows are those that were not known."""

    files: int = 0
    read: int = 0
    unreadable: int = 0
    bytes: int = 0
    records: int = 0
    new: int = 0
    redacted: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    damage: Counter[str] = field(default_factory=Counter)
    duration_s: float = 0.0

    @property
    def quarantined(self) -> int:
        return sum(count for kind, count in self.damage.items() if kind in QUARANTINED)

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "files": self.files,
            "read": self.read,
            "unreadable": self.unreadable,
            "bytes": self.bytes,
            "records": self.records,
            "new": self.new,
            "redacted": self.redacted,
            "quarantined": self.quarantined,
            "kinds": dict(sorted(self.kinds.items())),
            "damage": dict(sorted(self.damage.items())),
            "duration_s": round(self.duration_s, 3),
        }


@dataclass(slots=True)
class _File:
    """What is known of a file."""

    id: int
    path: str
    device: int
    inode: int
    generation: int
    read_to: int
    tail: bytes
    size: int
    changed_ns: int

    def is_as_it_was(self, found: Found) -> bool:
        return (
            self.device == found.device
            and self.inode == found.inode
            and self.size == found.size
            and self.changed_ns == found.changed_ns
        )

    def goes_on_in(self, found: Found, descriptor: int) -> bool:
        """Say whether a file is the one that was read, with more at its end."""
        is_same = (self.device, self.inode) == (found.device, found.inode)
        if not is_same or found.size < self.read_to:
            return False
        return pieces.hash_tail(descriptor, self.read_to) == self.tail


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


@dataclass(frozen=True, slots=True)
class _Mark:
    """How far a file was read, and how the disk had it then."""

    read_to: int
    tail: bytes
    size: int
    changed_ns: int


class _Sync:
    def __init__(self, db: Database, machine: str, clock: Clock) -> None:
        self._db = db
        self._machine = machine
        self._clock = clock
        self._known: dict[str, _File] = {}
        self._storing = asyncio.Lock()
        self.report = SyncReport()

    async def load(self) -> None:
        """Load what is known of this machine's files."""
        async with self._db.connection() as connection:
            rows = QUERIES.list_files(connection, machine=self._machine)
            self._known = {row["path"]: _build(row) async for row in rows}

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

    async def _read(self, found: Found, known: _File | None, descriptor: int) -> None:
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
                mark = _Mark(step.read_to, step.tail, size, changed_ns)
                await self._store(found, known, step.parsed, mark)
                if step.is_end:
                    break
        finally:
            # A thread can not be stopped, and it reads the file that is closed after this.
            await asyncio.gather(reading, return_exceptions=True)

    async def _open(self, found: Found) -> _File:
        async with self._db.transaction() as connection:
            row = await QUERIES.open_file(
                connection,
                machine=self._machine,
                path=found.path,
                device=found.device,
                inode=found.inode,
                read_at=self._clock.now(),
            )
        return _build(row)

    async def _store(
        self,
        found: Found,
        known: _File,
        parsed: Parsed,
        mark: _Mark,
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
        self, connection: Connection, found: Found, known: _File, parsed: Parsed
    ) -> int:
        await QUERIES.make_staging(connection)
        await connection.copy_records_to_table(
            STAGING, records=_records(found, parsed.rows), columns=COLUMNS
        )
        new = await QUERIES.take_staging(connection, file_id=known.id, generation=known.generation)
        await QUERIES.take_sessions(connection)
        await QUERIES.take_usage(connection)
        return new

    @staticmethod
    async def _note_damage(
        connection: Connection, known: _File, parsed: Parsed, now: datetime
    ) -> None:
        for position, damage in enumerate(parsed.damage):
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


def _records(found: Found, rows: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as the staging table has them."""
    side_agent, of_file = found.side_agent, found.session
    for row in rows:
        session = row.session_id or of_file or found.path
        agent = row.agent_id or side_agent
        parent = session if agent else None
        usage = row.usage or (None, None, None, None)
        yield (
            f"{session}/{agent}" if agent else session,
            parent,
            agent,
            row.cwd or found.project,
            row.offset,
            row.kind,
            row.subtype,
            row.uuid or "",
            row.parent_uuid,
            row.at,
            row.text,
            row.raw,
            row.digest,
            row.message_id,
            row.model,
            *usage,
        )


def _build(row: Any) -> _File:
    fields = dict(row)
    fields["inode"], fields["changed_ns"] = int(fields["inode"]), int(fields["changed_ns"])
    return _File(**fields)
