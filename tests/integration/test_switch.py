"""A model switch on the real Letta: what it changes, what it refuses, and that it comes back.

A canary is a real agent that takes a real turn; the model servers are rehearsals.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from han_solo.errors import (
    LettaUnreachable,
    PlanRefused,
    SwitchFailed,
    SwitchUnsettled,
)
from han_solo.guard_context import CheckContext
from han_solo.loader import load_registry
from han_solo.reconcile.journal import hold_lock
from tests.integration.guard_fixtures import build_guard_services
from tests.integration.switch_fixtures import (
    SECOND,
    SILENT,
    SwitchWorld,
    open_switch_world,
)

REHEARSAL = "openai-proxy/rehearsal"


@pytest.fixture
async def world(
    letta_server: Any, letta_actor: Mapping[str, str], database_url: str
) -> AsyncIterator[SwitchWorld]:
    async with open_switch_world(letta_server, letta_actor, database_url) as world:
        yield world


async def test_a_switch_carries_every_setting_and_every_tool(world: SwitchWorld) -> None:
    before = await world.whole()
    done = await world.switch(SECOND)
    after = await world.whole()
    assert done.trial is not None
    assert done.trial.answered
    config = after["llm_config"]
    assert config["handle"] == SECOND
    assert config["provider_name"] == "second"
    assert config["model_endpoint"] != before["llm_config"]["model_endpoint"]
    assert config["enable_reasoner"] is False
    for name in ("context_window", "max_tokens", "temperature", "parallel_tool_calls"):
        assert config[name] == before["llm_config"][name]
    assert after["tools"] == before["tools"]
    assert after["system"] == before["system"]
    (row,) = await world.services.journal.load()
    assert (row.outcome, row.from_handle, row.to_handle) == ("done", REHEARSAL, SECOND)
    assert [step.step for step in await world.services.journal.load_steps(row.switch_id)] == [
        "config",
        "canary",
    ]
    assert await world.count_agents() == 1


async def test_back_and_forth_is_the_same_to_the_byte(world: SwitchWorld) -> None:
    before = await world.whole()
    await world.switch(SECOND)
    switched = await world.whole()
    await world.switch(None)
    assert await world.whole() == before
    await world.switch(None)
    assert await world.whole() == switched


async def test_an_unknown_model_is_refused_with_what_was_meant(world: SwitchWorld) -> None:
    before = await world.whole()
    with pytest.raises(PlanRefused, match="no model openai-proxy/secnd") as caught:
        await world.switch("openai-proxy/secnd")
    assert caught.value.reason == "unknown_model"
    assert caught.value.hint == f"Did you mean {SECOND}?"
    assert await world.whole() == before
    assert await world.services.journal.load() == ()


async def test_a_silent_canary_brings_the_old_config_back(world: SwitchWorld) -> None:
    before = await world.whole()
    with pytest.raises(SwitchFailed, match="did not answer") as caught:
        await world.switch(SILENT)
    assert caught.value.reason == "canary_silent"
    assert await world.whole() == before
    (row,) = await world.services.journal.load()
    assert row.outcome == "returned"
    steps = await world.services.journal.load_steps(row.switch_id)
    assert [(step.step, step.outcome) for step in steps] == [
        ("config", "done"),
        ("canary", "failed"),
        ("config_back", "done"),
    ]
    assert await world.count_agents() == 1


async def test_tools_that_the_first_plan_loses_the_second_puts_back(world: SwitchWorld) -> None:
    before = await world.whole()
    names = sorted(tool.name for tool in (await world.agent()).tools)

    async def lose(agent_id: str, _config: object) -> None:
        if agent_id == world.agent_id:
            await world.detach(names)

    world.gateway.after["patch_llm_config"] = lose
    done = await world.switch(SECOND)
    assert list(done.restored) == names
    assert (await world.whole())["tools"] == before["tools"]


async def test_a_config_that_reads_back_otherwise_is_undone(world: SwitchWorld) -> None:
    before = await world.whole()

    async def meddle(agent_id: str, config: Mapping[str, object]) -> None:
        world.gateway.after.clear()
        patched = {**config, "temperature": 0.9}
        await world.lab.http.patch(f"/v1/agents/{agent_id}", json={"llm_config": patched})

    world.gateway.after["patch_llm_config"] = meddle
    with pytest.raises(SwitchFailed, match="back on"):
        await world.switch(SECOND)
    assert await world.whole() == before


async def test_a_letta_that_goes_away_leaves_what_the_next_sync_undoes(world: SwitchWorld) -> None:
    before = await world.whole()

    async def unplug(*_: object) -> None:
        raise LettaUnreachable("Letta is away")

    async def go_away(*_: object) -> None:
        world.gateway.before = dict.fromkeys(
            ("fetch_agent", "patch_llm_config", "create_canary", "end_canary"), unplug
        )

    world.gateway.after["patch_llm_config"] = go_away
    with pytest.raises(SwitchUnsettled, match="could not be put back"):
        await world.switch(SECOND)
    assert (await world.whole())["llm_config"]["handle"] == SECOND
    await world.lab.sync()
    assert await world.whole() == before
    (row,) = await world.services.journal.load()
    assert row.outcome == "undone"


async def test_a_second_switch_at_the_same_time_is_refused(
    world: SwitchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("han_solo.reconcile.switch.run.LOCK_WAIT_S", 0.2)
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def hold(*_: object) -> None:
        waiting.set()
        await go_on.wait()

    world.gateway.before["create_canary"] = hold
    first = asyncio.create_task(world.switch(SECOND))
    await waiting.wait()
    with pytest.raises(PlanRefused, match="has been under way") as caught:
        await world.switch(SILENT)
    assert caught.value.reason == "switch_running"
    go_on.set()
    assert (await first).plan.to_handle == SECOND


async def test_a_sync_that_runs_makes_a_switch_wait(
    world: SwitchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("han_solo.reconcile.switch.run.LOCK_WAIT_S", 0.2)
    services = world.services
    async with hold_lock(services.db, services.spec.name, clock=services.clock):
        with pytest.raises(Exception, match="Another process has been syncing"):
            await world.switch(SECOND)


async def test_a_cancelled_switch_goes_back(world: SwitchWorld) -> None:
    before = await world.whole()
    waiting = asyncio.Event()

    async def hold(*_: object) -> None:
        waiting.set()
        await asyncio.Event().wait()

    world.gateway.before["send_message"] = hold
    switching = asyncio.create_task(world.switch(SECOND))
    await waiting.wait()
    switching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await switching
    assert await world.whole() == before
    assert await world.count_agents() == 1


async def test_a_smaller_window_needs_to_be_asked_for(world: SwitchWorld) -> None:
    await world.lab.gateway.patch_llm_config(
        world.agent_id, {**(await world.agent()).llm_config, "context_window": 200_000}
    )
    before = await world.whole()
    with pytest.raises(PlanRefused, match="would be shortened") as caught:
        await world.switch(SECOND)
    assert caught.value.reason == "window_shrinks"
    assert await world.whole() == before
    await world.switch(SECOND, context_window=30_000)
    assert (await world.agent()).llm_config["context_window"] == 30_000


async def test_a_model_that_the_spec_does_not_allow_is_refused(world: SwitchWorld) -> None:
    world.use_spec(allowed=("google_ai/*",))
    with pytest.raises(PlanRefused, match="does not allow") as caught:
        await world.switch(SECOND)
    assert caught.value.reason == "not_allowed"


async def test_a_key_that_the_provider_refuses_is_found_before(world: SwitchWorld) -> None:
    provider = next(p for p in await world.lab.gateway.fetch_providers() if p.name == "second")
    await world.lab.gateway.replace_key(provider.id, "wrong")
    before = await world.whole()
    with pytest.raises(PlanRefused, match="refuses the key") as caught:
        await world.switch(SECOND)
    assert caught.value.reason == "key_refused"
    assert await world.whole() == before


async def test_a_switch_to_what_runs_does_nothing(world: SwitchWorld) -> None:
    before = await world.whole()
    done = await world.switch(REHEARSAL)
    assert done.switch_id is None
    assert await world.whole() == before
    assert await world.services.journal.load() == ()


async def test_nothing_to_go_back_to_is_said(world: SwitchWorld) -> None:
    with pytest.raises(PlanRefused, match="never switched"):
        await world.switch(None)


async def test_a_plan_changes_nothing(world: SwitchWorld) -> None:
    before = await world.whole()
    plan = await world.plan(SECOND)
    assert not plan.is_empty
    assert await world.whole() == before
    assert await world.services.journal.load() == ()


async def test_a_sync_knows_a_switch_that_was_meant(world: SwitchWorld) -> None:
    await world.switch(SECOND)
    outcome = await world.lab.sync()
    assert outcome.in_sync
    (found,) = [f for f in outcome.remaining.findings if f.kind == "model_differs"]
    assert "since a switch" in found.sentence
    assert SECOND in found.hint
    # A window that shrinks behind our back is put back, though the spec names another model.
    view = await world.agent()
    await world.lab.gateway.patch_llm_config(
        world.agent_id, {**view.llm_config, "context_window": 8_000, "enable_reasoner": True}
    )
    await world.lab.sync()
    assert (await world.agent()).llm_config == view.llm_config


async def test_a_model_changed_behind_our_back_is_still_a_conflict(world: SwitchWorld) -> None:
    await world.switch(SECOND)
    await world.lab.http.patch(f"/v1/agents/{world.agent_id}", json={"model": SILENT})
    outcome = await world.lab.sync()
    assert [finding.kind for finding in outcome.remaining.conflicts] == ["model_differs"]


async def test_a_spec_that_follows_leaves_nothing_to_say(world: SwitchWorld) -> None:
    await world.switch(SECOND)
    world.lab.use(
        spec=dataclasses.replace(
            world.lab.services.spec,
            model=dataclasses.replace(world.lab.services.spec.model, handle=SECOND),
        )
    )
    outcome = await world.lab.sync()
    assert outcome.in_sync
    assert not [f for f in outcome.remaining.findings if f.kind == "model_differs"]


async def test_guards_watch_the_model_that_was_switched_to(world: SwitchWorld) -> None:
    services = build_guard_services(world.lab, world.agent_id)
    guards = {guard.name: guard for guard in load_registry().guards}

    async def check(name: str) -> list[str]:
        context = CheckContext(services, world.agent_id, now=services.clock.now())
        return [finding.key for finding in await guards[name].check(context)]

    await world.switch(SECOND)
    for name in ("model_settings", "context_window", "reasoner_off"):
        assert await check(name) == []
    config = (await world.agent()).llm_config
    await world.lab.gateway.patch_llm_config(
        world.agent_id, {**config, "context_window": 8_000, "temperature": 0.9}
    )
    assert await check("context_window") == ["context_window"]
    assert await check("model_settings") == ["temperature"]
    await world.lab.http.patch(f"/v1/agents/{world.agent_id}", json={"model": SILENT})
    assert "handle" in await check("model_settings")
