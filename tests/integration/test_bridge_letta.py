"""The bridge with a real Letta: it syncs itself, the agent calls its tools, and it heals."""

from __future__ import annotations

import uuid
from dataclasses import replace

import asyncpg
import httpx
import pytest

from han_solo import MemoryContext, tool
from han_solo.clock import Clock
from han_solo.declare import spec_of
from han_solo.errors import AgentGone, NotFound
from han_solo.loader import load_registry
from han_solo.principals import KIND_SCOPES, Principal
from han_solo.reconcile.spec import load_spec
from han_solo.reconcile.switch import canary
from han_solo.reconcile.switch.config import Asked
from han_solo.reconcile.switch.preflight import Wanted
from han_solo.reconcile.switch.run import switch_model
from han_solo.reconcile.switch.services import SwitchServices
from han_solo.registry import build_registry
from han_solo.turns.silence import find_cause
from tests.floors import OpenFloor

from .bridge_fixtures import Cable, connect_letta, running
from .switch_fixtures import run_model

MODEL = "openai-proxy/rehearsal"

SPEC = """
[agent]
name = "{name}"
person = "Scott"

[model]
handle = "openai-proxy/rehearsal"

[[blocks]]
label = "notes"
description = "Notes."
limit = 5000
seed = "nothing yet"
"""


@pytest.fixture
async def letta_cable(letta_server):
    async with Cable(letta_server.base_url) as cable:
        yield cable


@pytest.fixture
def start(tmp_path, database_url, letta_server, letta_actor, letta_cable):
    """Return a function that runs a bridge against an organisation of its own."""
    name = f"Ren-{uuid.uuid4().hex[:8]}"
    (tmp_path / "agent.toml").write_text(SPEC.format(name=name))

    def start(registry=None, **options):
        letta = connect_letta(letta_cable.url, letta_server.password, letta_actor["user_id"])
        options = {"letta_base_url": letta_cable.url, **options}
        return running(
            tmp_path,
            registry or load_registry(),
            letta=letta,
            database_url=database_url,
            agent_name=name,
            agent_spec=tmp_path / "agent.toml",
            bridge_port=letta_server.bridge_ports[7],
            letta_password=letta_server.password,
            **options,
        )

    return start


def is_in_sync(health):
    return health["status"] == "ok" and health["sync"]["tools_in_sync"] is True


async def test_bridge_makes_the_agent_and_the_agent_calls_a_tool(start, database_url):
    async with start() as bridge:
        health = await bridge.wait_health(is_in_sync)
        assert health["failed"] == {}
        gateway = bridge.backend._letta.gateway
        agent_id = bridge.backend._agent_id
        turn = await gateway.send_message(
            OpenFloor(agent_id),
            'Call the tool create_notecard with {"text": "from Ren", "creator": "ren"}.',
        )
        assert turn.tool_returns[0].status == "success"
        assert "from Ren" in turn.tool_returns[0].text
        connection = await asyncpg.connect(database_url)
        row = await connection.fetchrow("SELECT text, principal, agent_id FROM memory.notecards")
        await connection.close()
        assert tuple(row) == ("from Ren", "agent", agent_id)

        turn = await gateway.send_message(
            OpenFloor(agent_id),
            'Call the tool write_core_memory with {"label": "notes", "value": "new"}.',
        )
        assert turn.tool_returns[0].status == "success"
        agent = await gateway.fetch_agent(agent_id)
        assert agent.block("notes").value == "new"


async def test_an_error_of_a_tool_reaches_the_agent_as_its_sentence(start):
    async with start() as bridge:
        await bridge.wait_health(is_in_sync)
        turn = await bridge.backend._letta.gateway.send_message(
            OpenFloor(bridge.backend._agent_id),
            'Call the tool write_core_memory with {"label": "nope", "value": "new"}.',
        )
        [returned] = turn.tool_returns
        assert returned.status == "error"
        assert "has no core block 'nope'" in returned.text
        assert "It has: notes." in returned.text


async def test_agent_info_and_sync_tell_and_mend_drift(start):
    async with start() as bridge:
        await bridge.wait_health(is_in_sync)
        headers = bridge.headers("operator")
        info = (await bridge.client.get("/api/admin/agent-info", headers=headers)).json()
        assert info["in_sync"] is True
        assert info["drift"] == []
        assert info["model"] == MODEL
        assert info["context_window"] > 0
        assert info["tools"]["attached"] == info["tools"]["declared"] > 0

        gateway = bridge.backend._letta.gateway
        agent = await gateway.fetch_agent(info["id"])
        [lost] = [tool for tool in agent.tools if tool.name == "create_notecard"]
        await gateway.detach_tool(info["id"], lost.id)
        info = (await bridge.client.get("/api/admin/agent-info", headers=headers)).json()
        assert info["drift"] == ["attach_tool create_notecard"]

        response = await bridge.client.post("/api/admin/sync-mcp-tools", headers=headers)
        assert response.status_code == 200
        assert response.json()["in_sync"] is True
        agent = await gateway.fetch_agent(info["id"])
        assert lost.id in {tool.id for tool in agent.tools}


async def test_bridge_starts_without_letta_and_syncs_once_it_is_there(start, letta_cable):
    letta_cable.cut()
    async with start() as bridge:
        health = await bridge.wait_health(lambda health: health["sync"]["tools_in_sync"] is False)
        assert health["memory_db_connected"] is True
        assert health["status"] == "degraded"
        assert "Letta" in health["sync"]["reason"]
        headers = bridge.headers("operator")
        response = await bridge.client.post("/api/admin/sync-mcp-tools", headers=headers)
        assert response.status_code == 503
        assert response.headers["retry-after"]
        letta_cable.mend()
        await bridge.wait_health(is_in_sync)


async def test_a_second_start_finds_the_same_agent_and_changes_nothing(start):
    async with start() as bridge:
        await bridge.wait_health(is_in_sync)
        first = bridge.backend._agent_id
    async with start() as bridge:
        await bridge.wait_health(is_in_sync)
        assert bridge.backend._agent_id == first
        agents = await bridge.backend._letta.gateway.find_agents(bridge.backend._agent_name)
        assert [agent.id for agent in agents] == [first]


async def test_operators_tools_are_not_registered_in_letta(start):
    @tool(effect="read", audience="client")
    async def client_only(context: MemoryContext) -> str:
        """Read what only clients may."""
        return ""

    registry = build_registry([*load_registry(), replace(spec_of(client_only))])
    async with start(registry) as bridge:
        await bridge.wait_health(is_in_sync)
        names = {tool.name for tool in await bridge.backend._letta.gateway.fetch_tools()}
        assert "create_notecard" in names
        assert "client_only" not in names


async def test_an_agent_that_is_gone_is_said_and_its_blocks_are_not_written(start):
    gone = f"agent-{uuid.uuid4()}"
    async with start(agent_id=gone) as bridge:
        health = await bridge.wait_health(lambda health: health["sync"]["tools_in_sync"] is False)
        assert health["status"] == "degraded"
        assert gone in health["failed"]["agent"]
        headers = bridge.headers("operator")
        response = await bridge.client.post("/api/admin/sync-mcp-tools", headers=headers)
        assert response.status_code == 409
        with pytest.raises(AgentGone):
            await bridge.backend._letta.gateway.fetch_agent(gone)


async def test_a_wrong_agent_id_resolves_no_agent_and_no_block_is_written(
    start, letta_server, letta_actor
):
    async with start() as bridge:
        await bridge.wait_health(is_in_sync)
    async with httpx.AsyncClient(base_url=letta_server.base_url, headers=letta_actor) as letta:
        block = {"label": "notes", "value": "theirs"}
        made = await letta.post(
            "/v1/agents/", json={"name": "other", "model": MODEL, "memory_blocks": [block]}
        )
        other = made.raise_for_status().json()
    async with start(agent_id=other["id"]) as bridge:
        health = await bridge.wait_health(lambda found: found["sync"]["tools_in_sync"] is False)
        assert health["status"] == "degraded"
        assert not health["agent_resolved"]
        assert other["id"] in health["failed"]["agent"]
        write = load_registry().get("write_core_memory")
        operator = Principal("operator", "operator", KIND_SCOPES["operator"])
        with pytest.raises(NotFound):
            await bridge.backend.bind(write, operator)


async def test_a_canary_may_read_and_its_writes_are_refused(start, database_url, monkeypatch):
    turns = []

    def note(turn):
        turns.append(turn)
        return find_cause(turn)

    async with start() as bridge, run_model("second") as url:
        await bridge.wait_health(is_in_sync)
        gateway, db = bridge.backend._letta.gateway, bridge.backend._data.database
        await gateway.add_provider("second", "openai", "a key", url)
        spec = load_spec(bridge.backend.connections.settings.agent_spec)
        services = SwitchServices(gateway, db, spec, note, Clock())
        for question in (
            'Call the tool create_notecard with {"text": "from a canary", "creator": "ren"}.',
            "Call the tool list_notecards with {}.",
        ):
            monkeypatch.setattr(canary, "QUESTION", question)
            wanted = Wanted(None if turns else "openai-proxy/second", Asked(context_window=30_000))
            await switch_model(services, bridge.backend._agent_id, wanted)
        written, listed = (turn.tool_returns[0] for turn in turns)
        assert written.status == "error"
        assert "only tries a model" in written.text
        assert listed.status == "success"
        connection = await asyncpg.connect(database_url)
        assert await connection.fetchval("SELECT count(*) FROM memory.notecards") == 0
        await connection.close()
