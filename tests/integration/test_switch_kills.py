"""A switch whose process is killed is finished or undone at the next start, whoever starts.

A sync is what every start of the bridge runs; the daemon looks by itself, and a switch looks first.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from han_solo.errors import LettaUnreachable
from han_solo.reconcile.journal import hold_lock
from han_solo.reconcile.switch.settle import settle_left
from tests.integration.switch_fixtures import SECOND, SILENT, SwitchWorld, open_switch_world


@pytest.fixture
async def world(
    letta_server: Any, letta_actor: Mapping[str, str], database_url: str
) -> AsyncIterator[SwitchWorld]:
    async with open_switch_world(letta_server, letta_actor, database_url) as world:
        world.job = {
            "base_url": letta_server.base_url,
            "actor": dict(letta_actor),
            "database_url": database_url,
            "agent_id": world.agent_id,
            "name": world.lab.services.spec.name,
            "handle": SECOND,
        }
        yield world


async def kill_at(world: SwitchWorld, point: str) -> None:
    """Begin a switch in a process of its own, which is killed at the point."""
    command = ("-m", "tests.integration.switch_starter", json.dumps(world.job), point)
    process = await asyncio.create_subprocess_exec(sys.executable, *command)
    assert await process.wait() == -signal.SIGKILL


async def settle_as_bridge(world: SwitchWorld) -> None:
    await world.lab.sync()


async def settle_as_daemon(world: SwitchWorld) -> None:
    assert await settle_left(world.lab.services)


@pytest.mark.parametrize(
    ("point", "settle"),
    [
        pytest.param("before patch_llm_config", settle_as_daemon, marks=pytest.mark.deep),
        ("after patch_llm_config", settle_as_bridge),
        pytest.param("after create_canary", settle_as_daemon, marks=pytest.mark.deep),
        ("before send_message", settle_as_daemon),
        pytest.param("before end_canary", settle_as_daemon, marks=pytest.mark.deep),
    ],
)
async def test_a_switch_killed_before_its_canary_is_heard_is_undone(
    world: SwitchWorld, point: str, settle: Any
) -> None:
    before = await world.whole()
    await kill_at(world, point)
    await settle(world)
    assert await world.whole() == before
    (row,) = await world.services.journal.load()
    assert row.outcome == "undone"
    assert await world.count_agents() == 1
    assert await world.services.journal.load_left_canaries() == {}


async def test_a_switch_killed_after_its_canary_answered_is_finished(world: SwitchWorld) -> None:
    before = await world.whole()
    await kill_at(world, "after end_canary")
    (row,) = await world.services.journal.load()
    steps = await world.services.journal.load_steps(row.switch_id)
    # Killed between the canary's end and its record: the record alone is what counts.
    await world.services.journal.finish(row.switch_id, steps[-1].position, {})
    await settle_as_bridge(world)
    assert (await world.agent()).llm_config == row.new_config
    assert (await world.whole())["tools"] == before["tools"]
    (row,) = await world.services.journal.load()
    assert row.outcome == "done"


@pytest.mark.deep
async def test_the_next_switch_settles_first(world: SwitchWorld) -> None:
    await kill_at(world, "after patch_llm_config")
    before = (await world.agent()).llm_config
    assert before["handle"] == SECOND
    done = await world.switch(SECOND)
    assert done.plan.from_handle == "openai-proxy/rehearsal"
    assert [row.outcome for row in await world.services.journal.load()] == ["done", "undone"]


@pytest.mark.deep
async def test_what_somebody_changed_since_is_left_alone(world: SwitchWorld) -> None:
    await kill_at(world, "after patch_llm_config")
    await world.lab.http.patch(f"/v1/agents/{world.agent_id}", json={"model": SILENT})
    before = await world.whole()
    await settle_as_daemon(world)
    assert await world.whole() == before
    (row,) = await world.services.journal.load()
    assert row.outcome == "abandoned"
    assert "somebody changed" in str(row.error)


async def test_tools_lost_between_the_two_plans_come_back(world: SwitchWorld) -> None:
    before = await world.whole()
    await kill_at(world, "after patch_llm_config")
    await world.detach(sorted(tool.name for tool in (await world.agent()).tools))
    await settle_as_daemon(world)
    assert await world.whole() == before


@pytest.mark.deep
async def test_a_switch_that_is_under_way_is_not_settled(world: SwitchWorld) -> None:
    await kill_at(world, "after patch_llm_config")
    before = await world.whole()
    services = world.services
    async with hold_lock(services.db, services.spec.name, clock=services.clock):
        assert await settle_left(world.lab.services) is None
    assert await world.whole() == before


@pytest.mark.deep
async def test_a_canary_that_could_not_be_ended_is_ended_later(world: SwitchWorld) -> None:
    async def fail(*_: object) -> None:
        world.gateway.before.clear()
        raise LettaUnreachable("Letta is away")

    world.gateway.before["end_canary"] = fail
    await world.switch(SECOND)
    assert await world.count_agents() == 2
    await world.lab.sync()
    assert await world.count_agents() == 1
