"""Two bridges on one database and one agent: what both append is all there, in one history."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sys
import uuid

import httpx
import pytest
from fastmcp import Client

from han_solo.embedded.ports import find_free_port
from han_solo.letta.gateway import LettaGateway
from han_solo.tokens.service import Tokens
from tests.integration.store_fixtures import migrated

MODEL = "openai-proxy/rehearsal"
SPEC = """
[agent]
name = "{name}"
person = "Scott"

[model]
handle = "openai-proxy/rehearsal"

[[blocks]]
label = "notes"
limit = 100_000
writers = ["client"]
"""


@contextlib.asynccontextmanager
async def bridge_process(environment, home, port):
    """Run ``han-solo bridge`` and yield the URL of its tools."""
    log = (home.parent / f"{home.name}.log").open("wb")
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "han_solo", "bridge"),
        env={**environment, "HAN_SOLO_HOME": str(home), "HAN_SOLO_BRIDGE_PORT": str(port)},
        stdout=log,
        stderr=log,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=url) as client, asyncio.timeout(120):
            while True:
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get("/health")).json()["status"] == "ok":
                        break
                assert child.returncode is None, (home.parent / f"{home.name}.log").read_text()
                await asyncio.sleep(0.1)
        yield f"{url}/mcp"
    finally:
        if child.returncode is None:
            child.terminate()
        await child.wait()
        log.close()


@pytest.fixture
async def bridges(tmp_path, letta_server, database_url):
    """Yield the URLs of two bridges, a client's token, Letta and the agent's id."""
    name = f"Ren-{uuid.uuid4().hex[:8]}"
    (tmp_path / "agent.toml").write_text(SPEC.format(name=name))
    gateway = LettaGateway.connect(letta_server.base_url, letta_server.password)
    async with gateway, migrated(database_url) as db:
        block = await gateway.create_block("notes", "", limit=100_000)
        agent = await gateway.create_agent(name=name, model=MODEL, block_ids=[block.id])
        token = (await Tokens(db).create("claude", "client")).token
        environment = {
            **os.environ,
            "HAN_SOLO_DATABASE_URL": database_url,
            "HAN_SOLO_AGENT_ID": agent.id,
            "HAN_SOLO_AGENT_SPEC": str(tmp_path / "agent.toml"),
            "LETTA_BASE_URL": letta_server.base_url,
            "HAN_SOLO_LETTA_PASSWORD": letta_server.password,
            # One that this Letta does not accept: no tools are registered in its organisation.
            "HAN_SOLO_BRIDGE_URL": "http://127.0.0.1:1/mcp",
        }
        ports = find_free_port(), find_free_port()
        async with contextlib.AsyncExitStack() as stack:
            urls = await asyncio.gather(
                *(
                    stack.enter_async_context(
                        bridge_process(environment, tmp_path / str(port), port)
                    )
                    for port in ports
                )
            )
            yield urls, token, gateway, block, db


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(25, id="25 each"),
        pytest.param(500, id="500 each", marks=[pytest.mark.deep, pytest.mark.timeout(1800)]),
    ],
)
async def test_appends_through_two_bridges_are_all_there_and_gapless(bridges, count):
    urls, token, gateway, block, db = bridges

    async def append(name, url):
        async with Client(url, auth=token) as session:
            for number in range(count):
                result = await session.call_tool(
                    "core_memory_append", {"label": "notes", "content": f"{name} {number}"}
                )
                assert json.loads(result.content[0].text)["changed"] is True

    await asyncio.gather(*(append(name, url) for name, url in zip("ab", urls, strict=True)))
    value = (await gateway.fetch_block(block.id)).value
    lines = value.split("\n")
    assert sorted(lines) == sorted(f"{name} {n}" for name in "ab" for n in range(count))
    for name in "ab":  # each bridge's own stand in the order in which they were made
        own = [line for line in lines if line.startswith(name)]
        assert own == [f"{name} {n}" for n in range(count)]
    async with db.connection() as connection:
        rows = await connection.fetch(
            "SELECT number, value, origin FROM memory.agent_core_block_versions"
            " WHERE block_id = $1 ORDER BY number",
            block.id,
        )
        assert await connection.fetchval("SELECT count(*) FROM han_solo.block_intents") == 0
    assert [row["number"] for row in rows] == list(range(1, 2 * count + 2))
    assert {row["origin"] for row in rows[1:]} == {"write"}
    assert [row["value"] for row in rows[1:]] == [
        "\n".join(lines[: n + 1]) for n in range(2 * count)
    ]
    switches = sum(first[0] != second[0] for first, second in itertools.pairwise(lines))
    assert switches > count // 5, "one bridge kept the other waiting"


async def test_what_can_not_be_stored_is_refused_by_name_over_mcp(bridges):
    (url, _), token, gateway, block, _ = bridges
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    for text, said in (("a\x00b", "NUL"), ("a\ud800b", "surrogate")):
        call = {"name": "core_memory_append", "arguments": {"label": "notes", "content": text}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        async with httpx.AsyncClient() as client:
            answer = (await client.post(url, content=body, headers=headers)).json()
        assert answer["result"]["isError"] is True
        assert said in answer["result"]["content"][0]["text"]
    assert (await gateway.fetch_block(block.id)).value == ""
