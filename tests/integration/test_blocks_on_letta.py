"""Core blocks on the real Letta: kept to the byte, shared, renamed, and put right after reverts."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from han_solo.blocks.model import Author
from han_solo.blocks.service import Blocks
from han_solo.blocks.versions import BlockVersions
from han_solo.errors import BlockRefused, LettaConflict, LettaUnavailable, WriteNotVerified
from han_solo.letta.views import BlockView
from tests.contract.actor import open_gateway
from tests.contract.mcp_stub import McpStub, StubTool, serve
from tests.floors import OpenFloor
from tests.integration.store_fixtures import migrated

MODEL = "openai-proxy/rehearsal"
LIMIT = 1_100_000
REN = Author("agent", "ren")
MIXED = "\ufeffline \U0001f469\u200d\U0001f680 e\u0301 \t \r\n"
HUNDRED_THOUSAND = f"{MIXED * (99_990 // len(MIXED))}".ljust(100_000)


@pytest.fixture
async def opened(letta_server, letta_actor):
    gateway, transport = open_gateway(letta_server.base_url, letta_actor)
    async with gateway:
        yield gateway, transport


@pytest.fixture
def gateway(opened):
    return opened[0]


@pytest.fixture
async def block(gateway):
    return await gateway.create_block("notes", "seed", limit=LIMIT, description="Notes.")


@pytest.fixture
async def agent(gateway, block):
    return await gateway.create_agent(name="ren", model=MODEL, block_ids=[block.id])


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


@pytest.fixture
def versions(db):
    return BlockVersions(db, settle_after_s=1)


@pytest.fixture
def blocks(gateway, agent, versions):
    return Blocks(gateway, versions, agent.id, REN, timeout_s=60)


async def texts(db, block):
    async with db.connection() as connection:
        rows = await connection.fetch(
            "SELECT value, number FROM memory.agent_core_block_versions WHERE block_id = $1"
            " ORDER BY number",
            block.id,
        )
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    return [row["value"] for row in rows]


# Texts


@pytest.mark.parametrize(
    "text",
    [
        "",
        " trailing spaces  \r\n\r\n\t",
        "\ufeffBOM first \U0001f469\u200d\U0001f680 e\u0301 \u2028 \x1b[0m",
        HUNDRED_THOUSAND,
        "x" * 1_000_000,
    ],
    ids=["empty", "white", "unusual", "100,000 mixed", "a million"],
)
async def test_a_value_comes_back_to_the_byte(blocks, gateway, block, db, text):
    written = await blocks.write("notes", text)
    assert written.length == len(text)
    assert (await gateway.fetch_block(block.id)).value.encode() == text.encode()
    assert (await blocks.read("notes")).value.encode() == text.encode()
    assert (await texts(db, block))[-1].encode() == text.encode()


def test_the_mixed_text_is_what_it_is_said_to_be():
    assert len(HUNDRED_THOUSAND) == 100_000
    assert all(part in HUNDRED_THOUSAND for part in ("\ufeff", "\r\n", "\U0001f680", "   "))


# Costs


async def test_a_write_costs_three_requests_and_one_without_a_change_costs_one(
    blocks, opened, agent, block
):
    await blocks.write("notes", "first")
    sent = opened[1].sent
    sent.clear()
    await blocks.write("notes", "new")
    by_id = f"/v1/blocks/{block.id}"
    assert sent == [("GET", by_id), ("PATCH", by_id), ("GET", by_id)]
    sent.clear()
    await blocks.write("notes", "new")
    assert sent == [("GET", by_id)]
    sent.clear()
    await blocks.read("notes")
    await blocks.inspect()
    assert sent == [("GET", f"/v1/agents/{agent.id}")] * 2


# Refusals


async def test_lettas_memory_tools_forbid_writes_until_they_are_detached(
    blocks, gateway, agent, block
):
    tools = {tool.name: tool.id for tool in await gateway.fetch_tools()}
    await gateway.attach_tool(agent.id, tools["memory_insert"])
    with pytest.raises(BlockRefused, match="memory_insert") as caught:
        await blocks.write("notes", "new")
    assert caught.value.reason == "builtin_memory_tools"
    assert (await gateway.fetch_block(block.id)).value == "seed"
    await gateway.detach_tool(agent.id, tools["memory_insert"])
    assert (await blocks.write("notes", "new")).changed


async def test_letta_does_not_enforce_the_limit_and_we_do(blocks, gateway, block):
    await gateway.patch_block(block.id, limit=5)
    with pytest.raises(BlockRefused, match="6 characters, 1 more than its limit of 5"):
        await blocks.write("notes", "123456")
    assert (await gateway.fetch_block(block.id)).value == "seed"
    assert (await gateway.write_block(block.id, "123456")).value == "123456"


async def test_a_read_only_block_is_not_written(blocks, gateway, block):
    changed = await gateway.patch_block(block.id, read_only=True, description="Fixed.")
    assert (changed.read_only, changed.description, changed.value) == (True, "Fixed.", "seed")
    with pytest.raises(BlockRefused, match="read-only"):
        await blocks.write("notes", "new")


async def test_a_second_block_of_one_label_is_a_conflict(gateway, agent):
    second = await gateway.create_block("notes", "other", limit=100)
    with pytest.raises(LettaConflict):
        await gateway.attach_block(agent.id, second.id)


# Several writers


async def test_parallel_writes_of_one_block_conflict_in_letta(gateway, block):
    outcomes = await asyncio.gather(
        *(gateway.write_block(block.id, f"value {n}") for n in range(12)), return_exceptions=True
    )
    kinds = {type(outcome) for outcome in outcomes}
    assert kinds <= {BlockView, LettaConflict}
    assert LettaConflict in kinds
    assert BlockView in kinds


async def test_parallel_appends_are_all_there(blocks, gateway, block, db):
    await asyncio.gather(*(blocks.append("notes", f"line {n}") for n in range(20)))
    value = (await gateway.fetch_block(block.id)).value
    assert sorted(value.split("\n")) == sorted(["seed", *(f"line {n}" for n in range(20))])
    kept = await texts(db, block)
    assert (len(kept), kept[-1]) == (21, value)


async def test_a_writer_outside_who_meets_ours_loses_nothing_and_breaks_nothing(
    blocks, gateway, block, db
):
    done = asyncio.Event()
    outside = []

    async def write_around():
        while not done.is_set():
            value = f"outside {len(outside)}"
            try:
                await gateway.write_block(block.id, value)
            except LettaConflict:
                continue
            outside.append(value)
            await asyncio.sleep(0.15)

    writing = asyncio.create_task(write_around())
    for number in range(15):
        with contextlib.suppress(WriteNotVerified):  # overwritten before it was read back
            await blocks.append("notes", f"ours {number}")
    done.set()
    await writing
    await blocks.inspect()
    value = (await gateway.fetch_block(block.id)).value
    kept = await texts(db, block)
    assert kept[-1] == value
    for number in range(15):
        assert any(f"ours {number}" in text.split("\n") for text in kept)


async def test_a_block_shared_by_two_agents_has_one_history(blocks, gateway, versions, block, db):
    other = await gateway.create_agent(name="other", model=MODEL, block_ids=[block.id])
    others = Blocks(gateway, versions, other.id, Author("agent", "other"), timeout_s=60)
    await blocks.append("notes", "ren's")
    await others.append("notes", "other's")
    await asyncio.gather(
        *(each.append("notes", f"both {n}") for n in range(4) for each in (blocks, others))
    )
    value = (await blocks.read("notes")).value
    assert value == (await others.read("notes")).value
    assert value.startswith("seed\nren's\nother's\n")
    assert len(await texts(db, block)) == 11
    entries = await blocks.history("notes")
    assert {entry.agent_id for entry in entries[:-1]} == {other.id, blocks._agent_id}
    assert [entry.number for entry in await others.history("notes")] == list(range(11, 0, -1))


async def test_a_renamed_agent_keeps_its_blocks_history(blocks, gateway, agent, block, db):
    await blocks.write("notes", "before")
    await gateway.patch_name(agent.id, "renamed")
    assert (await blocks.append("notes", "after")).version == 3
    assert await texts(db, block) == ["seed", "before", "before\nafter"]


async def test_a_relabelled_block_keeps_its_history(blocks, gateway, agent, block):
    await blocks.write("notes", "before")
    sent = await gateway._patch_block(block.id, {"label": "jottings"})
    assert sent.label == "jottings"
    assert (await blocks.append("jottings", "after")).version == 3
    entries = await blocks.history("jottings")
    assert [entry.label for entry in entries] == ["jottings", "notes", "notes"]
    with pytest.raises(BlockRefused, match="no core block 'notes'"):
        await blocks.write("notes", "x")


async def test_a_deadline_that_is_too_short_fails_by_name(gateway, agent, versions):
    with pytest.raises(LettaUnavailable, match="longer than 0"):
        await Blocks(gateway, versions, agent.id, REN, timeout_s=0.0001).read("notes")


# The incident: Letta's memory tools in the turn of our write


class OurTool(McpStub):
    """An MCP server whose one tool writes a block of the agent that calls it."""

    act = None

    async def handle(self, request):
        message = await request.json() if request.method == "POST" else {}
        if message.get("method") == "tools/call":
            await self.act()
        return await super().handle(request)


@pytest.fixture
async def turn(gateway, agent, versions, letta_server):
    """Return a function that runs a turn of the agent, which has our tool and memory_insert."""
    other = await gateway.create_block("other", "other's seed", limit=LIMIT)
    await gateway.attach_block(agent.id, other.id)
    stub = OurTool([StubTool("append_ours", "Append.", {"type": "object", "properties": {}})])
    forced = Blocks(gateway, versions, agent.id, REN, timeout_s=60, allow_builtins=True)
    stub.act = lambda: forced.append("notes", "ours", reason="in the turn")
    async with serve(stub, letta_server.bridge_ports[5]):
        await gateway.register_mcp_server("stub", stub.url, "hs_test")
        tools = {tool.name: tool.id for tool in await gateway.fetch_tools()}
        for name in ("append_ours", "memory_insert"):
            await gateway.attach_tool(agent.id, tools[name])

        async def run(*calls):
            steps = [{"call": name, "args": arguments} for name, arguments in calls]
            message = f"```rehearsal\n{json.dumps(steps)}\n```"
            turn = await gateway.send_message(OpenFloor(agent.id), message, max_steps=10)
            assert [done.status for done in turn.tool_returns] == ["success"] * len(calls)

        yield run


OURS = ("append_ours", {})


def insert(label):
    return "memory_insert", {"label": label, "new_string": "the built-in's", "insert_line": -1}


async def test_a_write_that_a_built_in_reverted_in_the_same_turn_is_put_right(
    blocks, gateway, block, db, turn
):
    await turn(OURS, insert("other"))
    assert (await gateway.fetch_block(block.id)).value == "seed"  # the incident
    notes, other = await blocks.inspect()
    assert (await gateway.fetch_block(block.id)).value == "seed\nours"
    (event,) = notes.events
    assert (event.kind, event.undone, event.version) == ("repaired", (2,), 3)
    assert await texts(db, block) == ["seed", "seed\nours", "seed\nours"]
    entry = (await blocks.history("notes"))[0]
    assert (entry.origin, entry.source, entry.author_kind) == ("revert_repaired", 2, "han_solo")
    assert entry.reason == "Letta held version 1 again; version 2 was put back."
    assert other.version == 1
    assert (await blocks.read("other")).value == "other's seed\nthe built-in's"


async def test_a_write_that_a_built_in_overwrote_in_the_same_block_is_joined_again(
    blocks, gateway, block, db, turn
):
    await gateway.write_block(block.id, "seed\nof two lines")
    await turn(OURS, insert("notes"))
    lost = "seed\nof two lines\nthe built-in's"
    assert (await gateway.fetch_block(block.id)).value == lost  # the incident
    (notes,) = await blocks.inspect("notes")
    both = "seed\nof two lines\nours\nthe built-in's"
    assert (await gateway.fetch_block(block.id)).value == both
    assert [event.kind for event in notes.events] == ["adopted", "merged"]
    assert notes.events[1].undone == (2,)
    assert await texts(db, block) == [
        "seed\nof two lines",
        "seed\nof two lines\nours",
        lost,
        both,
    ]


async def test_a_write_after_the_built_ins_in_the_same_turn_survives(
    blocks, gateway, block, db, turn
):
    await turn(insert("notes"), OURS)
    await blocks.inspect()
    value = (await gateway.fetch_block(block.id)).value
    assert value == "seed\nthe built-in's\nours"
    assert (await texts(db, block))[-1] == value


async def test_writes_between_built_ins_survive(blocks, gateway, block, db, turn):
    await turn(OURS, insert("other"), OURS, insert("other"))
    await blocks.inspect()
    value = (await gateway.fetch_block(block.id)).value
    assert value == "seed\nours\nours"
    assert (await texts(db, block))[-1] == value
