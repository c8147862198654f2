"""A writer is killed with -9 at any moment: the live text equals the last version, none is missing.

Half of the kills come at a random moment, half right behind a step of the protocol. After each, the
next access settles what was left, and the whole history must read as if each append had either been
made once or never been begun.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from han_solo.blocks.model import Author
from han_solo.blocks.service import Blocks
from han_solo.blocks.versions import BlockVersions
from tests.acceptance.block_writer import POINTS
from tests.contract.actor import open_gateway
from tests.integration.store_fixtures import migrated

MODEL = "openai-proxy/rehearsal"
ROOT = Path(__file__).resolve().parents[2]
SETTLE_AFTER_S = 2.0


class Writer:
    """The process that forks writers, and its lines."""

    def __init__(self, process):
        self._process = process
        self.done = []

    async def kill(self, number, point):
        """Let a writer run and end it with -9."""
        order = {"round": number, "point": point, "write": random.randint(1, 3)}
        self._process.stdin.write(f"{json.dumps(order)}\n".encode())
        pid, is_ready = None, False
        # One that ends at a point of the protocol does so by itself, and may have by now.
        while pid is None or not (is_ready or point):
            line = await self._line()
            pid = int(line.split()[1]) if line.startswith("pid ") else pid
            is_ready = is_ready or line == "ready"
        if point is None:
            await asyncio.sleep(random.uniform(0, 0.4))
            os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(120):
            while Path(f"/proc/{pid}").exists() if sys.platform == "linux" else _lives(pid):
                await asyncio.sleep(0.01)

    async def _line(self):
        line = (await self._process.stdout.readline()).decode().rstrip("\n")
        assert line, (await self._process.stderr.read()).decode()
        assert not line.startswith("failed "), line
        if line.startswith("done "):
            self.done.append(line.removeprefix("done "))
        return line

    async def drain(self):
        """Read what writers said before they ended."""
        try:
            async with asyncio.timeout(0.05):
                while True:
                    await self._line()
        except TimeoutError:
            pass


def _lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@asynccontextmanager
async def open_writer(job):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.acceptance.block_writer", json.dumps(job)),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Writer(process)
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(3, id="3 kills"),
        pytest.param(200, id="200 kills", marks=[pytest.mark.deep, pytest.mark.timeout(1500)]),
    ],
)
async def test_a_killed_writer_leaves_every_append_once_or_not_at_all(
    kills, letta_server, letta_actor, database_url
):
    gateway, _ = open_gateway(letta_server.base_url, letta_actor)
    async with gateway, migrated(database_url) as db:
        block = await gateway.create_block("notes", "begin", limit=1_000_000)
        agent = await gateway.create_agent(name="ren", model=MODEL, block_ids=[block.id])
        versions = BlockVersions(db, settle_after_s=SETTLE_AFTER_S)
        blocks = Blocks(gateway, versions, agent.id, Author("operator", "scott"), timeout_s=60)
        job = {
            "base_url": letta_server.base_url,
            "actor": dict(letta_actor),
            "database_url": database_url,
            "agent_id": agent.id,
            "settle_after_s": SETTLE_AFTER_S,
        }
        kinds = []
        async with open_writer(job) as writer:
            for number in range(kills):
                point = POINTS[number // 2 % len(POINTS)] if number % 2 else None
                await writer.kill(number, point)
                await writer.drain()
                (found,) = await blocks.inspect("notes")
                kinds += [event.kind for event in found.events]
                live = (await gateway.fetch_block(block.id)).value
                await check(db, block.id, live, writer.done)
        assert set(kinds) <= {"first_seen", "settled", "dropped"}
        assert "settled" in kinds
        assert "dropped" in kinds


async def check(db, block_id, live, done):
    """Compare the live text, the history, and what was reported as done."""
    async with db.connection() as connection:
        rows = await connection.fetch(
            "SELECT number, value, origin, author FROM memory.agent_core_block_versions"
            " WHERE block_id = $1 ORDER BY number",
            block_id,
        )
        open_intents = await connection.fetchval(
            "SELECT count(*) FROM han_solo.block_intents WHERE abandoned_at IS NULL"
        )
    assert open_intents == 0
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[-1]["value"] == live
    lines = live.split("\n")
    assert len(lines) == len(set(lines)) == len(rows)
    for count, row in enumerate(rows, start=1):
        assert row["value"] == "\n".join(lines[:count])
    assert {(row["origin"], row["author"]) for row in rows[1:]} <= {("write", "ren")}
    assert set(done) <= set(lines)
