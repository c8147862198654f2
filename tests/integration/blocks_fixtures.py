"""What the tests of the blocks share: an agent in memory whose writes go as a test says.

The database is always the real one. Where a test is about what Letta really does it takes the real
Letta; here it is about what can go wrong between the two.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from han_solo.blocks.model import Author, Rights
from han_solo.blocks.service import Blocks
from han_solo.blocks.versions import BlockVersions
from han_solo.clock import Clock
from han_solo.errors import LettaUnavailable
from han_solo.letta.views import AgentView, BlockView, ToolView
from tests.integration.store_fixtures import migrated

THREADS = BlockView(
    id="block-1", label="threads", value="old", limit=1000, read_only=False, description="d"
)
FIXED = replace(THREADS, id="block-2", label="fixed", read_only=True)
SCOTT = Author("operator", "scott")

Hook = Callable[[], Awaitable[None]]


class QuickClock(Clock):
    """The real time, and sleeps that take none of it."""

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(0)


@dataclass
class FakeLetta:
    """One agent. ``fates`` says how the next writes go; an exception is raised, nothing written.

    lands; lands unheard (written, and then no answer); is overwritten (written, answered, and
    somebody else wrote over it); is altered (something else is stored and answered); vanishes
    (answered, not stored); late (no answer; ``arrive`` carries it out).
    """

    tools: tuple[str, ...] = ()
    fates: list[str | Exception] = field(default_factory=list)
    blocks: dict[str, BlockView] = field(
        default_factory=lambda: {block.id: block for block in (THREADS, FIXED)}
    )
    sent: list[str] = field(default_factory=list)
    hangs: bool = False
    reads: list[str] = field(default_factory=list)
    is_away: bool = False
    before_write: Hook | None = None
    after_write: Hook | None = None
    pending: list[tuple[str, str]] = field(default_factory=list)

    @property
    def value(self) -> str:
        return self.blocks["block-1"].value

    def edit(self, value: str, block_id: str = "block-1") -> None:
        """Write around us."""
        self.blocks[block_id] = replace(self.blocks[block_id], value=value)

    def arrive(self) -> None:
        """Carry out the writes that were late."""
        while self.pending:
            block_id, value = self.pending.pop(0)
            self.edit(value, block_id)

    async def fetch_agent(self, agent_id: str) -> AgentView:
        await self._answer("agent")
        tools = tuple(
            ToolView(id=name, name=name, tool_type="x", description="", json_schema={})
            for name in self.tools
        )
        return AgentView(
            id=agent_id,
            name="ren",
            agent_type="letta_v1_agent",
            system="",
            llm_config={},
            embedding=None,
            tools=tools,
            blocks=tuple(self.blocks.values()),
            tags=(),
            tool_rules=(),
            description=None,
            last_stop_reason=None,
        )

    async def fetch_block(self, block_id: str) -> BlockView:
        await self._answer("block")
        return self.blocks[block_id]

    async def write_block(self, block_id: str, value: str) -> BlockView:
        if self.before_write:
            await self.before_write()
        self.sent.append(value)
        fate = self.fates.pop(0) if self.fates else "lands"
        if isinstance(fate, Exception):
            raise fate
        if fate == "late":
            self.pending.append((block_id, value))
            raise LettaUnavailable("no answer in time")
        if fate != "vanishes":
            self.edit("altered" if fate == "is altered" else value, block_id)
        answer = self.blocks[block_id]
        if fate == "is overwritten":
            self.edit("another's", block_id)
        if self.after_write:
            await self.after_write()
        if fate == "lands unheard":
            raise LettaUnavailable("no answer in time")
        return answer

    async def _answer(self, what: str) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.is_away:
            raise LettaUnavailable("Letta is away")
        self.reads.append(what)


@dataclass
class Lab:
    """Blocks of the fake agent over a real database."""

    letta: FakeLetta
    versions: BlockVersions
    db: Any

    def blocks(self, author: Author = SCOTT, **options: Any) -> Blocks:
        options = {"timeout_s": 5, "clock": QuickClock(), **options}
        return Blocks(self.letta, self.versions, "agent-1", author, **options)

    async def write(self, *values: str) -> None:
        for value in values:
            await self.blocks().write("threads", value)

    async def texts(self, block_id: str = "block-1") -> list[str]:
        """Return all versions' texts, oldest first."""
        async with self.db.connection() as connection:
            rows = await connection.fetch(
                "SELECT number, value FROM memory.agent_core_block_versions"
                " WHERE block_id = $1 ORDER BY number",
                block_id,
            )
        assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
        return [row["value"] for row in rows]

    async def intents(self) -> list[tuple[str, bool]]:
        """Return the texts of the intents there are, and whether each is open."""
        async with self.db.connection() as connection:
            rows = await connection.fetch(
                "SELECT value, abandoned_at IS NULL AS is_open FROM han_solo.block_intents"
                " ORDER BY created_at"
            )
        return [(row["value"], row["is_open"]) for row in rows]

    async def last(self, label: str = "threads") -> Any:
        return (await self.blocks().history(label, limit=1))[0]


@contextlib.asynccontextmanager
async def open_lab(url: str, *, settle_after_s: float = 5.0, **letta: Any) -> Any:
    async with migrated(url) as db:
        versions = BlockVersions(db, settle_after_s=settle_after_s)
        yield Lab(FakeLetta(**letta), versions, db)


def rights(**writers: tuple[str, ...]) -> Rights:
    return Rights(writers)
