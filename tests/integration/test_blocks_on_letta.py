"""Core blocks on the real Letta: kept to the byte, refused where a write could not last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from han_solo.blocks.service import Blocks, VerifiedWrite
from han_solo.errors import BlockRefused, LettaConflict, LettaUnavailable, WriteNotVerified
from han_solo.letta.gateway import LettaGateway
from han_solo.letta.views import AgentView, BlockView
from tests.contract.actor import ActorTransport, open_gateway

MODEL = "openai-proxy/rehearsal"
LIMIT = 1_100_000


@pytest.fixture
async def opened(
    letta_server: Any, letta_actor: Mapping[str, str]
) -> AsyncIterator[tuple[LettaGateway, ActorTransport]]:
    gateway, transport = open_gateway(letta_server.base_url, letta_actor)
    async with gateway:
        yield gateway, transport


@pytest.fixture
def gateway(opened: tuple[LettaGateway, ActorTransport]) -> LettaGateway:
    return opened[0]


@pytest.fixture
async def block(gateway: LettaGateway) -> BlockView:
    return await gateway.create_block("notes", "seed", limit=LIMIT, description="Notes.")


@pytest.fixture
async def agent(gateway: LettaGateway, block: BlockView) -> AgentView:
    return await gateway.create_agent(name="ren", model=MODEL, block_ids=[block.id])


@pytest.fixture
def blocks(gateway: LettaGateway, agent: AgentView) -> Blocks:
    return Blocks(gateway, agent.id, timeout_s=60)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " trailing spaces  \r\n\r\n\t",
        "\ufeffBOM first \U0001f469\u200d\U0001f680 e\u0301 \u2028 \x1b[0m",
        "line\r\n\U0001f600 " * 12_500,
        "x" * 1_000_000,
    ],
    ids=["empty", "white", "unusual", "100,000 mixed", "a million"],
)
async def test_a_value_comes_back_to_the_character(
    blocks: Blocks, gateway: LettaGateway, block: BlockView, text: str
) -> None:
    written = await blocks.write("notes", text)
    assert written.block.value == text
    assert (await gateway.fetch_block(block.id)).value == text
    assert (await blocks.read("notes")).value == text


async def test_a_write_costs_three_requests_and_a_read_one(
    blocks: Blocks, opened: tuple[LettaGateway, ActorTransport], agent: AgentView, block: BlockView
) -> None:
    sent = opened[1].sent
    sent.clear()
    await blocks.write("notes", "new")
    assert sent == [
        ("GET", f"/v1/agents/{agent.id}"),
        ("PATCH", f"/v1/blocks/{block.id}"),
        ("GET", f"/v1/blocks/{block.id}"),
    ]
    sent.clear()
    await blocks.read("notes")
    await blocks.write("notes", "new")
    assert sent == [("GET", f"/v1/agents/{agent.id}")] * 2


async def test_lettas_memory_tools_forbid_writes_until_they_are_detached(
    blocks: Blocks, gateway: LettaGateway, agent: AgentView, block: BlockView
) -> None:
    tools = {tool.name: tool.id for tool in await gateway.fetch_tools()}
    await gateway.attach_tool(agent.id, tools["memory_insert"])
    with pytest.raises(BlockRefused, match="memory_insert") as caught:
        await blocks.write("notes", "new")
    assert caught.value.reason == "builtin_memory_tools"
    assert (await gateway.fetch_block(block.id)).value == "seed"
    await gateway.detach_tool(agent.id, tools["memory_insert"])
    assert (await blocks.write("notes", "new")).changed


async def test_letta_does_not_enforce_the_limit_and_we_do(
    blocks: Blocks, gateway: LettaGateway, block: BlockView
) -> None:
    await gateway.patch_block(block.id, limit=5)
    with pytest.raises(BlockRefused, match="6 characters, 1 more than its limit of 5"):
        await blocks.write("notes", "123456")
    assert (await gateway.fetch_block(block.id)).value == "seed"
    assert (await gateway.write_block(block.id, "123456")).value == "123456"


async def test_a_read_only_block_is_not_written(
    blocks: Blocks, gateway: LettaGateway, block: BlockView
) -> None:
    changed = await gateway.patch_block(block.id, read_only=True, description="Fixed.")
    assert (changed.read_only, changed.description, changed.value) == (True, "Fixed.", "seed")
    with pytest.raises(BlockRefused, match="read-only"):
        await blocks.write("notes", "new")


async def test_a_second_block_of_one_label_is_a_conflict(
    gateway: LettaGateway, agent: AgentView
) -> None:
    second = await gateway.create_block("notes", "other", limit=100)
    with pytest.raises(LettaConflict):
        await gateway.attach_block(agent.id, second.id)


async def test_parallel_writes_of_one_block_conflict_in_letta(
    gateway: LettaGateway, block: BlockView
) -> None:
    outcomes = await asyncio.gather(
        *(gateway.write_block(block.id, f"value {n}") for n in range(12)), return_exceptions=True
    )
    kinds = {type(outcome) for outcome in outcomes}
    assert kinds <= {BlockView, LettaConflict}
    assert LettaConflict in kinds
    assert BlockView in kinds


async def test_parallel_verified_writes_are_all_told_the_truth(
    gateway: LettaGateway, agent: AgentView, block: BlockView
) -> None:
    blocks = Blocks(gateway, agent.id, timeout_s=60)
    outcomes = await asyncio.gather(
        *(blocks.write("notes", f"value {n}") for n in range(8)), return_exceptions=True
    )
    verified = [outcome for outcome in outcomes if isinstance(outcome, VerifiedWrite)]
    failed = [outcome for outcome in outcomes if not isinstance(outcome, VerifiedWrite)]
    assert verified
    assert all(isinstance(f, (WriteNotVerified, LettaConflict)) for f in failed)
    last = (await gateway.fetch_block(block.id)).value
    assert last in {f"value {n}" for n in range(8)}


async def test_a_block_shared_by_two_agents_is_written_for_both(
    blocks: Blocks, gateway: LettaGateway, block: BlockView
) -> None:
    other = await gateway.create_agent(name="other", model=MODEL, block_ids=[block.id])
    await blocks.write("notes", "shared")
    assert (await Blocks(gateway, other.id).read("notes")).value == "shared"


async def test_a_deadline_that_is_too_short_fails_by_name(
    gateway: LettaGateway, agent: AgentView
) -> None:
    with pytest.raises(LettaUnavailable, match="longer than 0"):
        await Blocks(gateway, agent.id, timeout_s=0.0001).read("notes")
