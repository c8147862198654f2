"""A process that appends to a block until it is killed; forked off anew for each line it is told.

It reads lines ``{"round": n, "point": name or null, "write": k}``, forks, and prints the child's
``pid``. The child prints ``ready``, then ``done LINE`` for each append that was reported as done,
and ``failed WHY`` should it end otherwise than by a kill. Nothing else is printed: what is written
in two pieces, as a log line is where output is not buffered, is torn by a kill or another's line.
With a point it kills itself there, in its k-th write: nothing is closed, flushed or rolled back.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

import letta_client  # noqa: F401 - loaded before the forks, since it takes most of a second

from han_solo import logs
from han_solo.blocks import versions as module
from han_solo.blocks.model import Author
from han_solo.blocks.service import Blocks
from han_solo.blocks.versions import BlockVersions, HeldBlock
from han_solo.letta.gateway import LettaGateway
from han_solo.store.database import Database
from tests.contract.actor import open_gateway

POINTS = ("intent committed", "patch answered", "read back", "version recorded", "lock given back")


def main() -> None:
    logs.configure(level="critical")
    job = json.loads(sys.argv[1])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(append_for_ever(job, order))
            except BaseException as error:
                say(f"failed {type(error).__name__}: {error}".replace("\n", " "))
                raise
        say(f"pid {child}")


def say(line: str) -> None:
    """Tell the test, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def append_for_ever(job: dict[str, Any], order: dict[str, Any]) -> None:
    db = await Database.connect(job["database_url"], pool_size=4)
    gateway, _ = open_gateway(job["base_url"], job["actor"])
    versions = BlockVersions(db, settle_after_s=job["settle_after_s"])
    blocks = Blocks(gateway, versions, job["agent_id"], Author("agent", "ren"), timeout_s=60)
    if order["point"]:
        die_at(order["point"], order["write"])
    say("ready")
    number = 0
    while True:
        number += 1
        text = f"{order['round']}.{number}"
        await blocks.append("notes", text)
        say(f"done {text}")


def die_at(point: str, write: int) -> None:
    """Put a kill behind the step after which the point is reached, for the n-th time."""
    owner, name = {
        "intent committed": (module.BlockVersions, "open_intent"),
        "patch answered": (LettaGateway, "write_block"),
        "read back": (LettaGateway, "fetch_block"),
        "version recorded": (HeldBlock, "record"),
        "lock given back": (Blocks, "append"),
    }[point]
    # A write by an agent that was read just now fetches the block before it and behind it.
    times = 2 * write - 1 if point == "read back" else write
    whole = getattr(owner, name)
    count = 0

    async def dying(*args: Any, **named: Any) -> Any:
        nonlocal count
        done = await whole(*args, **named)
        count += 1
        if count == times:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, dying)


if __name__ == "__main__":
    main()
