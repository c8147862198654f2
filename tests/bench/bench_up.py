"""How long `scripts/up --check` takes: in a fresh clone with an empty home, and a second time.

The first run downloads and builds everything; the second uses what is there. Both start all parts,
have the agent take one turn, and stop again.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from tests.fresh_clone import Done, fresh_clone

from .harness import Goal

GOALS = {"first_exit_code": Goal(max=0), "second_exit_code": Goal(max=0), "second_s": Goal(max=60)}


async def measure(_options: Any) -> dict[str, float]:
    """Run the command twice in one clone."""
    first, second = await asyncio.to_thread(_run_twice)
    for done in (first, second):
        if done.code:
            print(done.output, file=sys.stderr)
    return {
        "first_s": first.seconds,
        "first_exit_code": first.code,
        "second_s": second.seconds,
        "second_exit_code": second.code,
    }


def _run_twice() -> tuple[Done, Done]:
    with fresh_clone() as clone:
        return clone.run("scripts/up", "--check"), clone.run("scripts/up", "--check")
