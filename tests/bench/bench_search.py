"""How long a search takes, embedding included, and how fast passages are imported.

The passages are made up (``made_up.py``) and the configuration is the one that ``retrieval``
measures: two indexes of words, two of vectors, the log written. ``--rows`` is how many passages the
memory has in the end; it is measured at each power of ten on the way, so ``--rows 1000000`` shows
how it grows (an hour, and 12 GB of disk).
"""

from __future__ import annotations

import itertools
import statistics
import time
from argparse import ArgumentParser
from typing import Any

from han_solo.memory.passages import Passages
from tests.integration.memory_fixtures import BENCH, open_passages
from tests.servers import cache_directory, fresh_database, open_directory, run_postgres

from .bench_retrieval import start_home
from .harness import Goal
from .made_up import MadeUp

GOALS = {
    "p50_ms_at_10000": Goal(max=5.0),
    "p95_ms_at_10000": Goal(max=15.0),
    "p50_ms_at_100000": Goal(max=20.0),
    "p95_ms_at_100000": Goal(max=50.0),
    "import_rows_per_s": Goal(min=20_000),
}
STEPS = (10_000, 100_000)
SEARCHES = 300
WARM_UP = 50


def add_options(parser: ArgumentParser) -> None:
    """Add the options of this bench."""
    parser.add_argument("--rows", type=int, default=100_000, help="passages, 100,000 by default")


async def measure(options: Any) -> dict[str, float]:
    """Import, then search, at each power of ten and at the end."""
    cache = cache_directory()
    figures: dict[str, float] = {}
    with open_directory() as path:
        async with (
            run_postgres(start_home(path)) as postgres,
            fresh_database(postgres) as url,
            open_passages(url, cache, timeout_s=600) as passages,
        ):
            made_up = MadeUp(cache)
            drafts = list(made_up.drafts(options.rows))
            steps = sorted({rows for rows in STEPS if rows < options.rows} | {options.rows})
            for first, last in itertools.pairwise([0, *steps]):
                figures |= await load(passages, drafts[first:last])
                figures |= await time_searches(passages, made_up, last)
    return figures


async def load(passages: Passages, drafts: list[Any]) -> dict[str, float]:
    """Import passages, and return how long the parts of that took."""
    began = time.perf_counter()
    ended = {"written": began, "embedded": began}

    def tell(what: str, _count: int) -> None:
        ended[what] = time.perf_counter()

    await passages.insert_many(BENCH, drafts, tell)
    done = time.perf_counter()
    return {
        "import_rows_per_s": len(drafts) / (ended["written"] - began),
        "contexts_and_vectors_rows_per_s": len(drafts) / (ended["embedded"] - ended["written"]),
        "index_s": done - ended["embedded"],
    }


async def time_searches(passages: Passages, made_up: MadeUp, rows: int) -> dict[str, float]:
    """Return how long searches take, the first ones not counted."""
    async with passages._db.connection() as connection:
        await connection.execute("ANALYZE")
    spent_ms: list[float] = []
    for number in range(WARM_UP + SEARCHES):
        query = made_up.query()
        began = time.perf_counter()
        await passages.search(BENCH, query)
        if number >= WARM_UP:
            spent_ms.append((time.perf_counter() - began) * 1000)
    return {
        f"p50_ms_at_{rows}": statistics.median(spent_ms),
        f"p95_ms_at_{rows}": statistics.quantiles(spent_ms, n=20)[-1],
    }
