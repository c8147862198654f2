"""What a verified, versioned block write costs beside the bare PATCH and GET of the same run.

Both go through the same client to the same Letta, in turns, on an agent with 70 tools and ten
blocks. The verified write reads the block, notes its intent, writes, reads back and records the
version. A write to an agent that was not read for some seconds reads the agent first: that is
``first_ms``, and a bare write beside it ``first_bare_ms``.
"""

from __future__ import annotations

import itertools
from typing import Any

from han_solo.blocks.facts import AgentFacts
from han_solo.blocks.model import Author
from han_solo.blocks.service import Blocks
from han_solo.blocks.versions import BlockVersions
from tests.contract.actor import open_gateway
from tests.contract.mcp_stub import McpStub, StubTool, serve
from tests.integration.store_fixtures import migrated
from tests.servers import fresh_database, make_actor, run_all

from .harness import Goal, compare_ms

TOOLS = 70
BLOCKS = 10
VALUE_CHARS = 4_000
REPEATS = 60
RATIO, ADDED_MS = 1.3, 5.0
GOALS = {"over_allowed_ms": Goal(max=0.0)}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string", "description": "A text."}}}


async def measure(_options: Any) -> dict[str, float]:
    """Measure both, in turns."""
    async with run_all() as (postgres, letta), fresh_database(postgres) as url:
        actor = await make_actor(letta)
        gateway, _ = open_gateway(letta.base_url, actor)
        tools = [StubTool(f"tool_{n:02}", "Does it. " * 20, SCHEMA) for n in range(TOOLS)]
        async with (
            gateway,
            migrated(url) as db,
            serve(McpStub(tools), letta.bridge_ports[0]) as stub,
        ):
            await gateway.register_mcp_server("stub", stub.url, "hs_test")
            found = await gateway.fetch_tools()
            ids = [tool.id for tool in found if tool.name.startswith("tool_")]
            blocks = [
                await gateway.create_block(f"block_{n}", "x" * VALUE_CHARS, limit=100_000)
                for n in range(BLOCKS)
            ]
            agent = await gateway.create_agent(
                name="ren",
                model="openai-proxy/rehearsal",
                block_ids=[block.id for block in blocks],
                tool_ids=ids,
            )
            versions = BlockVersions(db)
            service = Blocks(gateway, versions, agent.id, Author("operator", "bench"))
            return await _compare(gateway, blocks[0].id, versions, service)


async def _compare(
    gateway: Any, block_id: str, versions: BlockVersions, service: Blocks
) -> dict[str, float]:
    numbers = itertools.count()

    def text() -> str:
        return f"{next(numbers):08}{'y' * (VALUE_CHARS - 8)}"

    async def bare() -> None:
        value = text()
        await gateway.write_block(block_id, value)
        assert (await gateway.fetch_block(block_id)).value == value

    async def verified() -> None:
        await service.write("block_1", text())

    async def first() -> None:
        versions.agents = AgentFacts()  # as when nothing was read for some seconds
        await service.write("block_2", text())

    spent = await compare_ms({"bare": bare, "verified": verified}, repeats=REPEATS)
    cold = await compare_ms({"bare": bare, "first": first}, repeats=REPEATS // 2)
    allowed = RATIO * spent["bare"] + ADDED_MS
    return {
        "verified_ms": spent["verified"],
        "bare_ms": spent["bare"],
        "allowed_ms": allowed,
        "over_allowed_ms": spent["verified"] - allowed,
        "ratio": spent["verified"] / spent["bare"],
        "first_ms": cold["first"],
        "first_bare_ms": cold["bare"],
        "first_over_allowed_ms": cold["first"] - (RATIO * cold["bare"] + ADDED_MS),
    }
