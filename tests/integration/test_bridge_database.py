"""The bridge on a real Postgres: tokens, tools, and a database that comes and goes."""

from __future__ import annotations

import asyncio
import os
import stat

import asyncpg
import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError

from han_solo.bridge.own_tokens import ensure_agent_token
from han_solo.clock import Clock
from han_solo.errors import BridgeError, Unauthenticated
from han_solo.home import Home
from han_solo.loader import load_registry
from han_solo.principals import KIND_SCOPES
from han_solo.reconcile.known import KnownAgent
from han_solo.tokens.service import Tokens

from .bridge_fixtures import Cable, connect_letta, running
from .store_fixtures import migrated

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
async def cable(database_url):
    async with Cable(database_url) as cable:
        yield cable


@pytest.fixture
async def bridge(tmp_path, cable, database_url):
    """Yield a bridge of a known agent whose Letta is away, which the memory does not need."""
    async with migrated(database_url) as db:
        await KnownAgent(db, "Ren", Clock()).store_agent_id("agent-1")
    options = {"letta": connect_letta(NOWHERE), "agent_name": "Ren"}
    async with running(
        tmp_path, load_registry(), database_url=cable.url, database_timeout_s=30, **options
    ) as bridge:
        yield bridge


def is_ok(health):
    return health["status"] == "ok"


async def count_cards(database_url):
    connection = await asyncpg.connect(database_url)
    try:
        return await connection.fetchval("SELECT count(*) FROM memory.notecards")
    finally:
        await connection.close()


async def test_memory_works_while_letta_is_away(bridge, database_url):
    health = await bridge.wait_health(is_ok)
    assert health["sync"]["tools_in_sync"] is not True
    async with Client(bridge.url, auth=bridge.token("agent")) as session:
        made = await session.call_tool("create_notecard", {"text": "one", "creator": "ren"})
    assert "one" in made.content[0].text
    connection = await asyncpg.connect(database_url)
    row = await connection.fetchrow("SELECT text, principal, agent_id FROM memory.notecards")
    await connection.close()
    assert tuple(row) == ("one", "agent", "agent-1")


async def test_letta_away_is_a_clear_error_of_a_block_tool(bridge):
    await bridge.wait_health(is_ok)
    async with Client(bridge.url, auth=bridge.token("agent")) as session:
        with pytest.raises(ToolError, match="Letta"):
            await session.call_tool("read_core_memory", {})


async def test_an_agent_that_is_not_managed_has_the_memory_and_no_blocks(bridge, database_url):
    await bridge.wait_health(is_ok)
    headers = {"x-agent-id": "agent-0f", **bridge.headers("agent")}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    accept = {"Accept": "application/json, text/event-stream"}

    async def call(name, **arguments):
        params = {"name": name, "arguments": arguments}
        response = await bridge.client.post(
            "/mcp", json={**body, "params": params}, headers={**headers, **accept}
        )
        return response.json()["result"]

    assert not (await call("create_notecard", text="two", creator="x"))["isError"]
    refused = await call("read_core_memory")
    assert refused["isError"]
    assert "agent-0f is not the one" in refused["content"][0]["text"]
    connection = await asyncpg.connect(database_url)
    assert await connection.fetchval("SELECT agent_id FROM memory.notecards") == "agent-0f"
    await connection.close()


async def test_revoked_and_expired_tokens_are_refused(bridge):
    await bridge.wait_health(is_ok)
    tokens = bridge.backend._data.tokens
    issued = await tokens.create("one", "operator")
    headers = {"Authorization": f"Bearer {issued.token}"}
    assert (await bridge.client.get("/mcp", headers=headers)).status_code == 405
    await tokens.revoke("one")
    response = await bridge.client.get("/mcp", headers=headers)
    assert response.status_code == 401
    assert "was revoked" in response.json()["error"]


async def test_bridge_starts_without_a_database_and_heals(bridge, cable):
    cable.cut()
    await bridge.wait_health(lambda health: "memory_db" in health["failed"])
    cable.mend()
    await bridge.wait_health(is_ok)
    assert bridge.token("agent").startswith("hs_")


async def test_a_database_that_goes_away_is_503_and_comes_back(bridge, cable, database_url):
    await bridge.wait_health(is_ok)
    headers = bridge.headers()
    cable.cut()
    for method, path in (("POST", "/mcp"), ("GET", "/api/admin/agent-info")):
        response = await bridge.client.request(method, path, headers=headers)
        assert response.status_code == 503
        assert response.headers["retry-after"]
        assert "127.0.0.1" in response.json()["error"] or "Postgres" in response.json()["error"]
    assert (await bridge.health())["memory_db_connected"] is False
    assert (await bridge.client.get("/ready")).status_code == 503
    cable.mend()
    await bridge.wait_health(is_ok)
    assert await count_cards(database_url) == 0
    async with Client(bridge.url, auth=bridge.token("agent")) as session:
        await session.call_tool("create_notecard", {"text": "back", "creator": "ren"})
    assert await count_cards(database_url) == 1


async def test_a_database_that_hangs_is_told_in_the_health_and_comes_back(bridge, cable):
    await bridge.wait_health(is_ok)
    cable.hold()
    async with asyncio.timeout(10):
        health = await bridge.health()
    assert health["memory_db_connected"] is False
    assert "did not answer" in health["failed"]["memory_db"]
    cable.let_go()
    await bridge.wait_health(is_ok)


async def test_a_database_cut_during_calls_leaves_nothing_half_written(bridge, cable, database_url):
    await bridge.wait_health(is_ok)

    async def write(number):
        async with Client(bridge.url, auth=bridge.token("agent")) as session:
            await session.call_tool("create_notecard", {"text": f"{number}", "creator": "ren"})

    writes = [asyncio.create_task(write(number)) for number in range(20)]
    await asyncio.sleep(0.2)
    cable.cut()
    results = await asyncio.gather(*writes, return_exceptions=True)
    done = sum(result is None for result in results)
    cable.mend()
    await bridge.wait_health(is_ok)
    # A commit whose answer was cut off is there and was reported as unknown: never the reverse.
    assert done <= await count_cards(database_url) <= len(writes)


async def test_own_tokens_are_made_once_in_private_files(tmp_path, database_url):
    home = Home(tmp_path)
    async with migrated(database_url) as db:
        tokens = Tokens(db)
        first = await ensure_agent_token(tokens, home)
        assert await ensure_agent_token(tokens, home) == first
        principal = await tokens.verify(first)
        assert (principal.name, principal.kind) == ("agent", "agent")
        assert principal.scopes == KIND_SCOPES["agent"]
        operator = await tokens.verify(home.read_token("operator"))
        assert operator.kind == "operator"
    for name in ("agent", "operator"):
        assert stat.S_IMODE(os.stat(home.tokens / name).st_mode) == 0o600  # noqa: PTH116


async def test_own_token_that_is_lost_revoked_or_too_narrow_is_made_anew(tmp_path, database_url):
    home = Home(tmp_path)
    async with migrated(database_url) as db:
        tokens = Tokens(db)
        first = await ensure_agent_token(tokens, home)
        (home.tokens / "agent").unlink()
        second = await ensure_agent_token(tokens, home)
        assert second != first
        assert (await tokens.verify(first)).name == "agent"  # in its grace

        await tokens.revoke("agent")
        third = await ensure_agent_token(tokens, home)
        with pytest.raises(Unauthenticated):
            await tokens.verify(second)

        await tokens.revoke("agent")
        narrow = await tokens.create("agent", "agent", ["memory:read"])
        home.write_token("agent", narrow.token)
        fourth = await ensure_agent_token(tokens, home)
        assert (await tokens.verify(fourth)).scopes == KIND_SCOPES["agent"]
        with pytest.raises(Unauthenticated):
            await tokens.verify(narrow.token)
        assert third != fourth


async def test_a_stranger_with_the_name_of_an_own_token_is_not_taken_over(tmp_path, database_url):
    async with migrated(database_url) as db:
        tokens = Tokens(db)
        theirs = await tokens.create("agent", "client")
        with pytest.raises(BridgeError, match="needs that name itself"):
            await ensure_agent_token(tokens, Home(tmp_path))
        assert (await tokens.verify(theirs.token)).kind == "client"


async def test_bridges_that_start_at_once_each_get_a_good_token(database_url, tmp_path):
    async with migrated(database_url) as db:
        tokens = Tokens(db)
        homes = [Home(tmp_path / str(number)) for number in range(4)]
        for home in homes:
            home.create()

        given = await asyncio.gather(*[ensure_agent_token(tokens, home) for home in homes])

        assert len(set(given)) == 4
        for token in given:
            assert (await tokens.verify(token)).kind == "agent"
