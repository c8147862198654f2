"""What Letta's own memory tools undo in a turn is put right after it, and the record says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from han_solo.blocks.model import Author
from han_solo.blocks.service import Blocks
from han_solo.blocks.versions import BlockVersions
from han_solo.bridge.conversation import build_turns
from han_solo.settings import Settings
from tests.servers import LettaServer

from .turn_fixtures import World, open_world, script


@pytest.fixture
async def world(
    letta_server: LettaServer, letta_actor: Mapping[str, str], database_url: str
) -> AsyncIterator[World]:
    async with open_world(letta_server, letta_actor, database_url) as opened:
        yield opened


async def test_a_write_that_the_turn_undid_is_put_back_and_recorded(world: World) -> None:
    made = [await world.gateway.create_block(label, "seed", limit=500) for label in ("a", "b")]
    tools = {tool.name: tool.id for tool in await world.gateway.fetch_tools()}
    await world.make_agent(
        block_ids=[block.id for block in made], tool_ids=[tools["memory_insert"]]
    )
    blocks = Blocks(
        world.gateway,
        BlockVersions(world.db),
        world.agent.id,
        Author("operator", "scott"),
        timeout_s=60,
        allow_builtins=True,
    )
    await blocks.inspect()
    turns = build_turns(
        Settings(message_gap_s=0),
        db=world.db,
        gateway=world.gateway,
        agent_id=world.agent.id,
        blocks=blocks,
    )
    insert = {"label": "b", "new_string": "inserted", "insert_line": -1}
    message = script({"call": "memory_insert", "args": insert, "sleep_s": 2}, {"say": "Done."})
    turn = asyncio.create_task(turns.send(message, sender="scott"))
    async with asyncio.timeout(60):
        while not await world.gateway.fetch_active_runs(world.agent.id):
            await asyncio.sleep(0.05)
        await blocks.write("a", "ours")
    reply = await turn

    assert reply.reverted == ("a",)
    assert (await turns.list())[0].reverted == ("a",)
    live = {
        block.label: block.value
        for block in (await world.gateway.fetch_agent(world.agent.id)).blocks
    }
    assert live["a"] == "ours"
    assert "inserted" in live["b"]
    assert [entry.origin for entry in await blocks.history("a", limit=1)] == ["revert_repaired"]
