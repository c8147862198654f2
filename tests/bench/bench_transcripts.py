"""How fast transcripts are read: decoded, made into rows, brought into Postgres, looked at again.

The corpus is made up, with the records, lengths and tool output of real sessions. Decoding and
rows are what one core does: the time of this process alone, whatever else the machine is busy
with. Ingest is by the clock, with the full-text index, and Postgres beside us. The sync with
nothing new looks at 2,000 files.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from han_solo.home import Home
from han_solo.transcripts.ingest import sync
from han_solo.transcripts.parse import parse
from han_solo.transcripts.pieces import PIECE_BYTES
from han_solo.transcripts.shape import EMPTY, message_decoder, record_decoder
from tests.integration.store_fixtures import migrated
from tests.servers import fresh_database, open_directory, run_postgres

from .harness import Goal
from .transcripts_corpus import write_corpus

FILES_AT_REST = 2_000
REPEATS = 3
GOALS = {
    "decode_mb_per_s": Goal(min=500),
    "rows_mb_per_s": Goal(min=150),
    "ingest_mb_per_s": Goal(min=30),
    "idle_sync_s": Goal(max=0.5),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the size of the corpus."""
    parser.add_argument("--mb", type=int, default=200, help="megabytes of sessions (200)")


async def measure(options: Any) -> dict[str, float]:
    """Measure each step on the same corpus."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        total = write_corpus(folder / "large", options.mb)
        decode_s, rows_s = _parse(folder / "large")
        write_corpus(folder / "small", 8, files=FILES_AT_REST)
        with open_directory() as home:
            async with (
                run_postgres(Home(home)) as postgres,
                fresh_database(postgres) as url,
                migrated(url) as db,
            ):
                began = time.perf_counter()
                report = await sync(db, [folder / "large"])
                ingest_s = time.perf_counter() - began
                await sync(db, [folder / "small"])
                idle_s = []
                for _ in range(REPEATS):
                    began = time.perf_counter()
                    await sync(db, [folder / "small"])
                    idle_s.append(time.perf_counter() - began)
    megabytes = total / 1e6
    return {
        "corpus_mb": megabytes,
        "records": report.records,
        "decode_mb_per_s": megabytes / decode_s,
        "rows_mb_per_s": megabytes / rows_s,
        "ingest_mb_per_s": megabytes / ingest_s,
        "idle_sync_s": statistics.median(idle_s),
    }


def _parse(folder: Path) -> tuple[float, float]:
    pieces = [piece for path in sorted(folder.rglob("*.jsonl")) for piece in _pieces(path)]
    return (
        _median_s(lambda: [_decode(piece) for piece in pieces]),
        _median_s(lambda: [len(parse(piece).rows) for piece in pieces]),
    )


def _pieces(path: Path) -> list[bytes]:
    """Cut a file as the ingest does."""
    data = path.read_bytes()
    pieces = []
    while data:
        stop = data.rfind(b"\n", 0, PIECE_BYTES) + 1
        pieces.append(data[:stop])
        data = data[stop:]
    return pieces


def _decode(piece: bytes) -> None:
    """Decode each line by its type, with its message, as the parser does."""
    for line in piece.splitlines():
        record = record_decoder.decode(line)
        if record.message is not EMPTY:
            message_decoder.decode(record.message)


def _median_s(run: Callable[[], object]) -> float:
    spent = []
    for _ in range(REPEATS):
        began = time.process_time()
        run()
        spent.append(time.process_time() - began)
    return statistics.median(spent)
