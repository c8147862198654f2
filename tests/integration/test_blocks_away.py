"""The database or the real Letta goes away before, during and after a write.

Whatever comes of it: a write that is called done was read back and is a version; one that failed
changed nothing; and where that can not be known the error says so and the next access settles it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import asyncpg
import httpx
import pytest

from han_solo.blocks.model import Author
from han_solo.blocks.service import Blocks
from han_solo.blocks.versions import BlockVersions
from han_solo.errors import (
    DatabaseUnavailable,
    LettaUnavailable,
    WriteUnsettled,
)
from tests.contract.actor import open_gateway
from tests.integration.blocks_fixtures import Lab
from tests.integration.bridge_fixtures import Cable
from tests.integration.store_fixtures import migrated

MODEL = "openai-proxy/rehearsal"
REN = Author("agent", "ren")


@dataclass
class Hooks(httpx.AsyncBaseTransport):
    """The network; calls back before a request leaves and after its answer came, once each."""

    inner: httpx.AsyncBaseTransport
    at: dict[tuple[str, str], Callable[[], Awaitable[None] | None]] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)

    async def handle_async_request(self, request):
        await self._call("before", request.method)
        self.sent.append(request.method)
        response = await self.inner.handle_async_request(request)
        await response.aread()
        await self._call("after", request.method)
        return response

    async def _call(self, when, method):
        hook = self.at.pop((when, method), None)
        if hook and (waiting := hook()):
            await waiting

    async def aclose(self):
        await self.inner.aclose()


@dataclass
class World:
    """One agent's block on a real Letta and a real database, each behind a cable."""

    database: Cable
    letta: Cable
    hooks: Hooks
    blocks: Blocks
    lab: Lab  # looks at the database around its cable
    look: object  # a gateway around Letta's cable
    block_id: str

    async def live(self):
        return (await self.look.fetch_block(self.block_id)).value

    def cut(self, when, method, *cables, mend_after_s=None):
        async def hook():
            for cable in cables:
                cable.cut()
                if mend_after_s is not None:
                    asyncio.get_running_loop().call_later(mend_after_s, cable.mend)

        self.hooks.at[when, method] = hook

    async def settle(self):
        """Bring everything back, have the block looked at, and return the events' kinds."""
        self.database.mend()
        self.letta.mend()
        (found,) = await self.blocks.inspect("notes")
        texts = await self.lab.texts(self.block_id)
        assert await self.live() == texts[-1]
        assert [intent for intent in await self.lab.intents() if intent[1]] == []
        return [event.kind for event in found.events]

    async def texts(self):
        return await self.lab.texts(self.block_id)


@pytest.fixture
async def world(letta_server, letta_actor, database_url):
    async with (
        Cable(database_url) as database,
        Cable(letta_server.base_url) as letta,
        migrated(database_url) as seen,
        migrated(database.url, timeout_s=5) as db,
    ):
        look, _ = open_gateway(letta_server.base_url, letta_actor)
        gateway, actor = open_gateway(letta.url, letta_actor)
        hooks = actor.inner = Hooks(actor.inner)
        async with look, gateway:
            block = await look.create_block("notes", "seed", limit=100_000)
            agent = await look.create_agent(name="ren", model=MODEL, block_ids=[block.id])
            blocks = Blocks(
                gateway,
                BlockVersions(db, settle_after_s=1),
                agent.id,
                REN,
                timeout_s=10,
            )
            await blocks.write("notes", "one")
            hooks.sent.clear()
            yield World(database, letta, hooks, blocks, Lab(None, None, seen), look, block.id)


# The database


async def test_database_away_before_the_write_leaves_everything_as_it_was(world):
    world.database.cut()
    with pytest.raises(DatabaseUnavailable):
        await world.blocks.write("notes", "two")
    assert "PATCH" not in world.hooks.sent
    assert await world.live() == "one"
    assert await world.settle() == []
    assert await world.texts() == ["seed", "one"]


@pytest.mark.parametrize("moment", [("before", "PATCH"), ("after", "PATCH")], ids=" ".join)
async def test_database_away_from_the_patch_on_takes_the_write_back(world, moment):
    world.cut(*moment, world.database)
    with pytest.raises(DatabaseUnavailable, match="taken back out of Letta"):
        await world.blocks.write("notes", "two")
    assert await world.live() == "one"
    assert await world.settle() in ([], ["dropped"])
    assert await world.texts() == ["seed", "one"]
    assert (await world.blocks.append("notes", "three")).version == 3


@pytest.mark.parametrize("moment", [("before", "PATCH"), ("after", "PATCH")], ids=" ".join)
async def test_database_away_for_a_moment_is_outlasted(world, moment):
    world.cut(*moment, world.database, mend_after_s=0.5)
    written = await world.blocks.write("notes", "two")
    assert (written.version, await world.live()) == (3, "two")
    assert await world.texts() == ["seed", "one", "two"]
    assert await world.settle() == []


async def test_a_lost_session_with_the_lock_in_it_is_outlasted(
    world, postgres_server, database_url
):
    async def end_sessions():
        connection = await asyncpg.connect(
            postgres_server.url(database_url.rpartition("/")[2], "postgres")
        )
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state = 'idle in transaction'"
        )
        await connection.close()

    world.hooks.at["after", "PATCH"] = end_sessions
    assert (await world.blocks.write("notes", "two")).version == 3
    assert await world.texts() == ["seed", "one", "two"]
    assert await world.settle() == []


async def test_both_away_after_the_patch_is_said_and_settled(world):
    world.cut("after", "PATCH", world.database, world.letta)
    with pytest.raises(WriteUnsettled, match="could not be read back"):
        await world.blocks.write("notes", "two")
    assert await world.live() == "two"
    assert await world.texts() == ["seed", "one"]
    assert await world.settle() == ["settled"]
    assert await world.texts() == ["seed", "one", "two"]
    assert (await world.blocks.history("notes"))[0].author == "ren"


async def test_letta_away_when_a_write_is_to_be_taken_back_is_said_and_settled(world):
    async def cut_database_and_next_letta():
        world.database.cut()
        world.cut("after", "GET", world.letta)

    world.hooks.at["after", "PATCH"] = cut_database_and_next_letta
    with pytest.raises(WriteUnsettled, match="was written, but the database went away"):
        await world.blocks.write("notes", "two")
    assert await world.live() == "two"
    assert await world.settle() == ["settled"]
    assert await world.texts() == ["seed", "one", "two"]


# Letta


async def test_letta_away_before_the_write_leaves_everything_as_it_was(world):
    world.letta.cut()
    with pytest.raises(LettaUnavailable):
        await world.blocks.write("notes", "two")
    assert await world.live() == "one"
    assert await world.settle() == []
    assert await world.texts() == ["seed", "one"]


async def test_letta_away_at_the_patch_is_not_known_and_is_settled(world):
    world.cut("before", "PATCH", world.letta)
    with pytest.raises((LettaUnavailable, WriteUnsettled)):
        await world.blocks.write("notes", "two")
    assert await world.live() == "one"
    assert await world.settle() in ([], ["dropped"])
    assert await world.texts() == ["seed", "one"]


async def test_letta_away_for_a_moment_at_the_patch_leaves_everything_as_it_was(world):
    world.cut("before", "PATCH", world.letta, mend_after_s=0.3)
    with pytest.raises((LettaUnavailable, WriteUnsettled)):
        await world.blocks.write("notes", "two")
    assert await world.live() == "one"
    assert await world.settle() in ([], ["dropped"])
    assert await world.texts() == ["seed", "one"]


async def test_letta_away_after_the_patch_is_said_and_settled(world):
    world.cut("after", "PATCH", world.letta)
    with pytest.raises(WriteUnsettled, match="could not be read back"):
        await world.blocks.write("notes", "two")
    assert await world.texts() == ["seed", "one"]
    assert await world.settle() == ["settled"]
    assert await world.texts() == ["seed", "one", "two"]


async def test_letta_away_for_a_moment_after_the_patch_is_outlasted(world):
    world.cut("after", "PATCH", world.letta, mend_after_s=0.5)
    assert (await world.blocks.write("notes", "two")).version == 3
    assert await world.settle() == []
    assert await world.texts() == ["seed", "one", "two"]


async def test_an_answer_that_got_lost_is_found_by_reading(world):
    def lose():
        raise httpx.ReadError("lost")

    world.hooks.at["after", "PATCH"] = lose
    assert (await world.blocks.write("notes", "two")).version == 3
    assert world.hooks.sent.count("PATCH") == 1
    assert await world.texts() == ["seed", "one", "two"]


async def test_a_write_that_letta_carries_out_late_is_its_authors(world):
    def never_arrive():
        raise httpx.ReadTimeout("no answer")

    world.hooks.at["before", "PATCH"] = never_arrive
    with pytest.raises(WriteUnsettled, match="gave no answer"):
        await world.blocks.write("notes", "two", reason="mine")
    await world.look.write_block(world.block_id, "two")  # it was on its way all the time
    assert await world.settle() == ["settled"]
    last = (await world.blocks.history("notes"))[0]
    assert (last.author, last.reason, last.number) == ("ren", "mine", 3)
