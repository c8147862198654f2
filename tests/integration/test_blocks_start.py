"""A bridge that starts keeps what the blocks hold, and settles what the last process left open."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest
from fastmcp import Client

from han_solo.blocks.model import Author, Rights
from han_solo.blocks.records import Text
from han_solo.blocks.versions import BlockVersions
from han_solo.loader import load_registry
from han_solo.reconcile.spec import load_spec
from tests.integration.bridge_fixtures import connect_letta, running
from tests.integration.store_fixtures import migrated

SPEC = """
[agent]
name = "{name}"
person = "Scott"

[model]
handle = "openai-proxy/rehearsal"

[[blocks]]
label = "mine"
limit = 5000
seed = "my seed"
writers = ["agent"]

[[blocks]]
label = "yours"
limit = 5000
seed = "your seed"
writers = ["operator"]
"""


@pytest.fixture
def start(tmp_path, database_url, letta_server, letta_actor):
    name = f"Ren-{uuid.uuid4().hex[:8]}"
    (tmp_path / "agent.toml").write_text(SPEC.format(name=name))
    spec = load_spec(tmp_path / "agent.toml")

    def start():
        url = letta_server.base_url
        return running(
            tmp_path,
            load_registry(),
            letta=connect_letta(url, letta_server.password, letta_actor["user_id"]),
            database_url=database_url,
            agent_name=name,
            rights=Rights.of(spec.blocks),
            agent_spec=tmp_path / "agent.toml",
            bridge_port=letta_server.bridge_ports[6],
            letta_password=letta_server.password,
            letta_base_url=url,
        )

    return start


async def wait_rows(db, is_so):
    async with asyncio.timeout(60):
        while True:
            async with db.connection() as connection:
                rows = await connection.fetch(
                    "SELECT label, number, value, origin, author, block_id"
                    " FROM memory.agent_core_block_versions ORDER BY label, number"
                )
            if is_so(rows):
                return rows
            await asyncio.sleep(0.05)


async def test_the_first_start_keeps_the_seeds_and_the_next_settles_what_was_left(
    start, database_url
):
    async with migrated(database_url) as db:
        async with start() as bridge:
            rows = await wait_rows(db, lambda rows: len(rows) == 2)
            assert [tuple(row)[:5] for row in rows] == [
                ("mine", 1, "my seed", "seed", "han-solo"),
                ("yours", 1, "your seed", "seed", "han-solo"),
            ]
            block_id, agent_id = rows[0]["block_id"], bridge.backend._agent_id
            # As a process leaves it that ended between the PATCH and the version.
            left = Text(block_id, "mine", agent_id, "left", Author("agent", "ren"), "why", "write")
            await BlockVersions(db).open_intent(left, 1)
            await bridge.backend._letta.gateway.write_block(block_id, "left")
        async with start():
            rows = await wait_rows(db, lambda rows: len(rows) == 3)
        assert tuple(rows[1])[:5] == ("mine", 2, "left", "write", "ren")


async def test_each_kind_of_caller_writes_what_the_spec_lets_it_write(start, database_url):
    async with migrated(database_url) as db, start() as bridge:
        await wait_rows(db, lambda rows: len(rows) == 2)
        for kind, label, other in (("agent", "mine", "yours"), ("operator", "yours", "mine")):
            async with Client(bridge.url, auth=bridge.token(kind)) as session:

                async def write(label, session=session, kind=kind):
                    arguments = {"label": label, "text": f"by {kind}"}
                    return await session.call_tool("block_append", arguments, raise_on_error=False)

                done = await write(label)
                assert json.loads(done.content[0].text)["version"] == 2
                refused = await write(other)
                assert refused.is_error
                assert f"not by {kind}" in refused.content[0].text
        rows = await wait_rows(db, lambda rows: len(rows) == 4)
        assert [row["value"] for row in rows] == [
            "my seed",
            "my seed\nby agent",
            "your seed",
            "your seed\nby operator",
        ]
