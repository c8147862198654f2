"""Syncs on the real Letta: every kind of drift that the product exists for, one a test."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from han_solo.errors import AgentGone, LettaUnavailable, PlanRefused
from han_solo.reconcile.plan import AttachTool, DetachTool, RegisterTool, UpdateTool
from han_solo.registry import ListedTool
from tests.contract.mcp_stub import McpStub, StubTool, serve
from tests.integration.reconcile_fixtures import SERVER, TOKEN, Lab, build_tools, open_lab
from tests.unit.reconcile_world import SPEC, listed


@pytest.fixture
async def lab(letta_server: Any, letta_actor: Any, database_url: str) -> AsyncIterator[Lab]:
    async with open_lab(letta_server, letta_actor, database_url, tools=build_tools(3)) as opened:
        yield opened


async def test_78_tools_are_registered_attached_and_seen(lab: Lab) -> None:
    lab.declare(build_tools(78))
    lab.transport.sent.clear()

    outcome = await lab.sync()

    assert outcome.in_sync
    assert set(await lab.attached()) == {tool.name for tool in build_tools(78)}
    posts = [path for method, path in lab.transport.sent if method == "POST"]
    assert posts == ["/v1/agents/", "/v1/mcp-servers/"]
    attaches = [p for m, p in lab.transport.sent if m == "PATCH" and "/tools/attach/" in p]
    assert len(attaches) == 78


async def test_a_sync_without_drift_makes_three_requests_of_letta_and_one_of_the_bridge(
    lab: Lab,
) -> None:
    await lab.sync()
    lab.transport.sent.clear()
    lab.stub.tokens_seen.clear()

    outcome = await lab.sync()

    assert outcome.in_sync
    assert outcome.run_id is None
    assert len(lab.transport.sent) == 3
    assert len(lab.stub.tokens_seen) == 1
    assert {method for method, _ in lab.transport.sent} == {"GET"}


async def test_a_tool_detached_by_hand_comes_back(lab: Lab) -> None:
    await lab.sync()
    tool_id = (await lab.attached())["tool_01"]
    await lab.gateway.detach_tool(await lab.agent_id(), tool_id)

    outcome = await lab.sync()

    assert outcome.plan.steps == (AttachTool("tool_01"),)
    assert (await lab.attached())["tool_01"] == tool_id


async def test_a_tool_deleted_by_hand_is_registered_and_attached_again(lab: Lab) -> None:
    await lab.sync()
    tool_id = (await lab.attached())["tool_01"]
    (await lab.http.delete(f"/v1/tools/{tool_id}")).raise_for_status()

    outcome = await lab.sync()

    assert outcome.plan.steps == (RegisterTool("tool_01"), AttachTool("tool_01"))
    assert "tool_01" in await lab.attached()


@pytest.mark.parametrize(
    "change",
    [
        {"tags": ["x"]},
        {"tags": []},
        {"tags": ["mcp:other"]},
        {"tags": [], "metadata_": {}},
        {"default_requires_approval": True},
        {"return_char_limit": 100},
    ],
    ids=str,
)
async def test_a_tool_that_was_changed_by_hand_is_mended_under_its_id(
    lab: Lab, change: dict[str, object]
) -> None:
    await lab.sync()
    before = (await lab.tools())["tool_01"]
    tool_id = (await lab.attached())["tool_01"]
    (await lab.http.patch(f"/v1/tools/{tool_id}", json=change)).raise_for_status()
    assert (await lab.tools())["tool_01"] != before

    outcome = await lab.sync()

    assert outcome.plan.steps == (UpdateTool("tool_01", tool_id),)
    assert outcome.in_sync
    assert (await lab.tools())["tool_01"] == before
    assert (await lab.attached())["tool_01"] == tool_id


async def test_a_tool_no_longer_declared_stays_attached_until_pruned_and_is_never_deleted(
    lab: Lab,
) -> None:
    await lab.sync()
    lab.declare(build_tools(2))

    kept = await lab.sync()
    assert kept.plan.steps == ()
    assert "tool_02" in await lab.attached()

    pruned = await lab.sync(prune=True)
    assert [type(step) for step in pruned.plan.steps] == [DetachTool]
    assert "tool_02" not in await lab.attached()
    assert "tool_02" in await lab.ours()


@pytest.mark.parametrize(
    "changed", [listed("tool_01", "Does it better.", a="string"), listed("tool_01", b="integer")]
)
async def test_a_changed_tool_is_updated_under_its_id_for_every_agent(
    lab: Lab, changed: ListedTool
) -> None:
    await lab.sync()
    before = (await lab.attached())["tool_01"]
    other = await lab.gateway.create_agent(name="other", model=SPEC.model.handle)
    await lab.gateway.attach_tool(other.id, before)
    lab.declare((*(t for t in build_tools(3) if t.name != "tool_01"), changed))
    lab.transport.sent.clear()

    outcome = await lab.sync()

    assert outcome.plan.steps == (UpdateTool("tool_01", before),)
    assert len(lab.transport.sent) == 3 + 2  # what a sync reads, and then write and read back
    for agent_id in (await lab.agent_id(), other.id):
        tool = (await lab.gateway.fetch_agent(agent_id)).tool("tool_01")
        assert tool
        assert tool.id == before
        assert tool.description == changed.description


async def test_a_changed_tool_past_the_organisations_fiftieth_is_updated(lab: Lab) -> None:
    tools = build_tools(60)
    lab.declare(tools)
    await lab.sync()
    before = (await lab.attached())["tool_59"]
    lab.declare((*tools[:59], listed("tool_59", "Changed.", a="string")))

    await lab.sync()

    tool = (await lab.agent()).tool("tool_59")
    assert tool
    assert (tool.id, tool.description) == (before, "Changed.")
    assert len(await lab.attached()) == 60


async def test_a_name_of_a_custom_tool_forbids_the_registration(lab: Lab) -> None:
    theirs = await lab.make_custom_tool("tool_01")

    with pytest.raises(PlanRefused, match="tool_01") as caught:
        await lab.sync()

    assert caught.value.reason == "name_collision"
    assert await lab.gateway.fetch_mcp_servers() == ()
    assert await lab.ours() == {}
    found = (await lab.tools())["tool_01"]
    assert (found.id, found.tool_type) == (theirs, "custom")


async def test_a_name_of_another_mcp_server_forbids_the_registration(
    lab: Lab, letta_server: Any
) -> None:
    theirs = McpStub([StubTool("tool_01", "Theirs.", {"type": "object", "properties": {}})])
    async with serve(theirs, letta_server.bridge_ports[1]):
        await lab.gateway.register_mcp_server("other", theirs.url, None)

    with pytest.raises(PlanRefused, match="the MCP server 'other'") as caught:
        await lab.sync()

    assert caught.value.reason == "name_collision"
    assert [server.name for server in await lab.gateway.fetch_mcp_servers()] == ["other"]
    assert (await lab.tools())["tool_01"].mcp_server == "other"


async def test_a_new_name_of_someone_else_is_named_and_left_to_them(lab: Lab) -> None:
    await lab.sync()
    theirs = await lab.make_custom_tool("tool_03")
    lab.declare(build_tools(5))

    outcome = await lab.sync()

    assert not outcome.in_sync
    assert [(f.kind, f.target) for f in outcome.remaining.conflicts] == [
        ("foreign_name", "tool_03")
    ]
    assert (await lab.tools())["tool_03"].id == theirs
    assert set(await lab.attached()) == {"tool_00", "tool_01", "tool_02", "tool_04"}


@pytest.mark.parametrize("fault", ["cold", "half", "token", "down"])
async def test_a_bridge_that_is_not_itself_refuses_and_nothing_is_lost(
    lab: Lab, fault: str
) -> None:
    await lab.sync()
    tools, attached = await lab.ours(), await lab.attached()
    await lab.gateway.detach_tool(await lab.agent_id(), attached["tool_01"])
    match fault:
        case "cold":
            lab.stub.tools = []
        case "half":
            lab.stub.tools = lab.stub.tools[:2]
        case "token":
            lab.stub.token = "another"
        case "down":
            lab.use(local_url=f"http://127.0.0.1:{_closed_port()}/mcp")

    with pytest.raises(PlanRefused) as caught:
        await lab.sync(prune=True)

    assert caught.value.reason == ("bridge_differs" if fault == "half" else "bridge_cold")
    assert await lab.ours() == tools
    assert set(await lab.attached()) == set(attached) - {"tool_01"}


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_bridge_that_goes_down_during_a_sync_stops_it_and_the_next_one_finishes(
    lab: Lab,
) -> None:
    await lab.sync()
    lab.declare(build_tools(6))
    listed = 0
    answer = lab.stub._answer

    def answer_twice(message: Any, agent_id: str | None) -> Any:
        # A session that was greeted and then gets a 500 keeps Letta waiting for ever, and whoever
        # stops it half a minute; one that is not greeted is what a bridge that is gone looks like.
        nonlocal listed
        if listed == 3:  # ours, and Letta's for two tools
            raise RuntimeError("the bridge is gone")
        listed += message["method"] == "tools/list"
        return answer(message, agent_id)

    lab.stub._answer = answer_twice  # type: ignore[method-assign]
    with pytest.raises(LettaUnavailable):
        await lab.sync()
    (run, *_) = await lab.services.journal.load_runs()
    steps = await lab.services.journal.load_steps(run.run_id)
    assert run.outcome == "failed"
    assert [(step.target, step.outcome) for step in steps] == [
        ("tool_03", "done"),
        ("tool_04", "done"),
        ("tool_05", "failed"),
    ]
    assert len(await lab.attached()) == 3

    lab.stub._answer = answer  # type: ignore[method-assign]
    outcome = await lab.sync()

    assert outcome.in_sync
    assert len(await lab.attached()) == 6


async def test_a_rotated_token_reaches_letta_and_no_tool_is_touched(lab: Lab) -> None:
    await lab.sync()
    tools = await lab.ours()
    lab.stub.token = "hs_rotated"
    lab.use(read_token=lambda: "hs_rotated")

    outcome = await lab.sync()

    assert outcome.in_sync
    (server,) = await lab.gateway.fetch_mcp_servers()
    assert server.token == "hs_rotated"
    assert await lab.ours() == tools


async def test_a_bridge_that_moved_is_given_its_new_address(lab: Lab, letta_server: Any) -> None:
    await lab.sync()
    tools = await lab.ours()
    moved = McpStub(lab.stub.tools, token=TOKEN)
    async with serve(moved, letta_server.bridge_ports[2]):
        lab.use(bridge_url=moved.url, local_url=moved.url)
        outcome = await lab.sync()

    assert outcome.in_sync
    (server,) = await lab.gateway.fetch_mcp_servers()
    assert server.url == moved.url
    assert await lab.ours() == tools


async def test_a_server_of_our_name_that_is_not_ours_is_left_alone(
    lab: Lab, letta_server: Any
) -> None:
    elsewhere = letta_server.bridge_url(3)
    await lab.gateway.register_mcp_server(SERVER, elsewhere, "theirs")

    with pytest.raises(PlanRefused) as caught:
        await lab.sync()

    assert caught.value.reason == "server_name_taken"
    (server,) = await lab.gateway.fetch_mcp_servers()
    assert (server.url, server.token) == (elsewhere, "theirs")


@pytest.mark.deep
async def test_after_a_restart_of_letta_every_tool_is_still_ours(
    lab: Lab, letta_server: Any
) -> None:
    await lab.sync()
    tools, attached = await lab.ours(), await lab.attached()

    await letta_server.restart()

    assert await lab.ours() == tools
    assert await lab.attached() == attached
    assert (await lab.sync()).plan.steps == ()


async def test_an_agent_with_lettas_base_tools_is_a_conflict_until_they_are_detached(
    lab: Lab,
) -> None:
    made = await lab.http.post(
        "/v1/agents/",
        json={
            "name": "theirs",
            "model": SPEC.model.handle,
            "agent_type": "memgpt_v2_agent",
            "include_base_tools": True,
        },
    )
    agent_id = made.raise_for_status().json()["id"]
    before = {tool.name for tool in (await lab.gateway.fetch_agent(agent_id)).tools}
    assert "memory_insert" in before
    lab.use(spec=dataclasses.replace(SPEC, name="theirs"), agent_id=agent_id)

    kept = await lab.sync()
    assert [f.kind for f in kept.remaining.conflicts] == ["builtin_memory_tools"]
    assert before < set(await lab.attached())

    outcome = await lab.sync(detach_builtin_memory=True)
    assert outcome.in_sync
    left = set(await lab.attached()) - {tool.name for tool in build_tools(3)}
    assert left == before - {"memory_insert", "memory_replace"}
    assert "memory_insert" in await lab.tools()


async def test_syncs_at_the_same_time_do_not_disturb_each_other(lab: Lab) -> None:
    await lab.sync()
    lab.declare(build_tools(12))

    outcomes = await asyncio.gather(*(lab.sync() for _ in range(3)))

    assert all(outcome.in_sync for outcome in outcomes)
    assert sorted(bool(outcome.plan.steps) for outcome in outcomes) == [False, False, True]
    assert len(await lab.attached()) == 12


async def test_an_agent_that_is_gone_is_not_made_again(lab: Lab) -> None:
    await lab.sync()
    agent_id = await lab.agent_id()
    (await lab.http.delete(f"/v1/agents/{agent_id}")).raise_for_status()

    with pytest.raises(AgentGone):
        await lab.sync()

    assert await lab.gateway.find_agents("ren") == ()
