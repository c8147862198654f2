"""What the store holds, as plain files: readable in ten years without us or Postgres.

A later part of the memory joins by adding a query ``export_<name>`` to ``queries/exports.sql``:
each becomes a file of JSON lines. A test sees to it that no table of the memory is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, Protocol

import asyncpg

from ..store.database import Connection, Database
from ..store.queries import load_queries, names_of


class _Queries(Protocol):
    def export_block_versions(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_notecards(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_agents(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_transcripts(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_transcript_sessions(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_transcript_files(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_transcript_usage(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_transcript_damage(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_passages(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_passage_notes(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_passage_links(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_chunks(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_searches(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def export_passage_uses(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    def list_blocks(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...


_QUERIES: Final = load_queries("exports", _Queries)
DERIVED: Final = frozenset({"contexts", "embedders", "vectors", "word_counts", "word_totals"})
"""Tables of the memory that are computed from others, and so are in the dump alone."""

_PREFIX: Final = "export_"
_UNSAFE: Final = re.compile(r"[^\w-]")


async def export_store(db: Database, directory: Path) -> dict[str, int]:
    """Write everything into files of a new directory, of one moment; returns rows by file."""
    directory.mkdir(mode=0o700)  # noqa: ASYNC240 one small local directory
    counts: dict[str, int] = {}
    async with db.transaction() as connection:
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for name in names_of(_QUERIES):
            if not name.startswith(_PREFIX):
                continue
            file = directory / f"{name.removeprefix(_PREFIX)}.jsonl"
            counts[file.name] = await _write_lines(file, getattr(_QUERIES, name)(connection))
        blocks = directory / "blocks"
        blocks.mkdir(mode=0o700)
        async for row in _QUERIES.list_blocks(connection):
            stem = f"{_UNSAFE.sub('_', row['label'])}.{row['block_id'][-8:]}.v{row['number']}.md"
            _write(blocks / stem, row["value"])
    return counts


async def _write_lines(file: Path, rows: AsyncIterator[asyncpg.Record]) -> int:
    count = 0
    with _open(file) as out:
        async for row in rows:
            out.write(row["line"] + "\n")
            count += 1
    return count


def _write(file: Path, text: str) -> None:
    with _open(file) as out:
        out.write(text)


def _open(file: Path):  # type: ignore[no-untyped-def] # noqa: ANN202 - a text file
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8", newline="")
