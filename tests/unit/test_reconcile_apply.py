"""Carrying out a plan: what is called, read back, noted, and what happens when a step fails."""

from __future__ import annotations

import dataclasses

import pytest

from han_solo.errors import (
    AgentGone,
    BridgeError,
    LettaUnavailable,
    PlanRefused,
    WriteNotVerified,
)
from han_solo.reconcile.spec import BlockSpec
from tests.unit.fake_letta import Bridge
from tests.unit.reconcile_world import SPEC, URL, World, listed

SEVENTY = tuple(listed(f"tool_{number:02}") for number in range(70))
READS = {"fetch_agent", "fetch_tools", "fetch_mcp_servers"}
PLAIN = dataclasses.replace(
    SPEC, model=dataclasses.replace(SPEC.model, enable_reasoner=True, max_reasoning_tokens=1024)
)


def outcomes(world: World) -> list[tuple[str, str, str]]:
    return [(r.kind, r.target, r.outcome) for r in world.notes.records]


def writes(world: World) -> list[str]:
    return [call for call in world.letta.calls if call not in READS]


async def test_a_first_sync_of_seventy_is_one_registration_and_one_attach_a_tool() -> None:
    world = World(SEVENTY)
    world.letta._change(
        world.agent_id, llm_config={"handle": SPEC.model.handle, "enable_reasoner": False}
    )

    await world.sync()

    assert writes(world) == ["register_mcp_server", *["attach_tool"] * 70]
    assert len(world.attached()) == 70


async def test_a_sync_without_anything_to_do_reads_three_things_of_letta() -> None:
    world = World(SEVENTY)
    await world.sync()
    world.letta.calls.clear()

    await world.sync()

    assert sorted(world.letta.calls) == sorted(READS)


async def test_a_changed_tool_costs_two_calls_and_keeps_its_id() -> None:
    world = World(SEVENTY)
    await world.sync()
    old = world.letta.tools["tool_07"].id
    world.declare(*[t for t in SEVENTY if t.name != "tool_07"], listed("tool_07", "New."))
    await world.observe()
    world.letta.calls.clear()

    await world.sync()

    assert sorted(world.letta.calls) == sorted([*READS, "register_tool", "fetch_tools"])
    assert world.letta.tools["tool_07"].id == old
    assert world.letta.tools["tool_07"].description == "New."


async def test_each_step_is_noted_at_its_place_in_the_plan() -> None:
    world = World(SEVENTY[:2])

    await world.sync()

    assert [(r.position, r.kind) for r in world.notes.records] == [
        (0, "register_server"),
        (1, "attach_tool"),
        (2, "attach_tool"),
        (3, "patch_llm_config"),
    ]


async def test_an_attach_that_letta_loses_is_not_reported_done() -> None:
    world = World(SEVENTY[:3])
    world.letta.lose = {"tool_01"}

    with pytest.raises(WriteNotVerified, match="attach tool tool_01"):
        await world.sync()

    assert ("attach_tool", "tool_01", "failed") in outcomes(world)
    assert ("attach_tool", "tool_00", "done") in outcomes(world)


async def test_an_update_that_letta_loses_is_not_reported_done() -> None:
    world = World(SEVENTY[:3])
    await world.sync()
    world.declare(*SEVENTY[:2], listed("tool_02", "New."))
    world.letta.lose = {"tool_02"}

    with pytest.raises(WriteNotVerified, match="update tool tool_02"):
        await world.sync()

    assert outcomes(world)[-1] == ("update_tool", "tool_02", "failed")


async def test_a_step_that_fails_stops_the_plan_and_running_again_finishes_it() -> None:
    world = World(SEVENTY[:3])
    tool = "register_tool:tool_01"
    world.letta.add_server("han-solo", URL, world.token)
    world.letta.fail[tool] = LettaUnavailable("the bridge went away")

    with pytest.raises(LettaUnavailable, match="went away"):
        await world.sync()

    assert outcomes(world) == [
        ("register_tool", "tool_00", "done"),
        ("register_tool", "tool_01", "failed"),
    ]
    assert world.attached() == set()
    del world.letta.fail[tool]
    await world.sync()
    assert world.attached() == {"tool_00", "tool_01", "tool_02"}


async def test_attaching_stops_at_the_first_failure() -> None:
    world = World(SEVENTY)
    world.letta.fail["attach_tool"] = LettaUnavailable("away")

    with pytest.raises(LettaUnavailable, match="away"):
        await world.sync()

    assert writes(world).count("attach_tool") <= 8


async def test_steps_whose_read_back_fails_are_not_noted_as_done() -> None:
    world = World(SEVENTY[:2])
    observed = await world.observe()
    world.letta.fail["fetch_agent"] = LettaUnavailable("away")

    with pytest.raises(LettaUnavailable):
        await apply(world, observed)

    assert {outcome for kind, _, outcome in outcomes(world) if kind == "attach_tool"} == {"failed"}


async def test_a_bridge_that_letta_can_not_reach_is_said_so() -> None:
    world = World(SEVENTY[:2])
    observed = await world.observe()
    world.letta.bridges[URL] = Bridge((), None, is_up=False)

    with pytest.raises(BridgeError, match="got no tools from"):
        await apply(world, observed)

    assert outcomes(world) == [("register_server", "han-solo", "failed")]


async def test_a_bridge_that_changes_in_between_is_not_reported_done() -> None:
    world = World(SEVENTY[:2])
    observed = await world.observe()
    world.letta.bridges[URL].tools = (SEVENTY[0], listed("tool_01", "Other code."))

    with pytest.raises(WriteNotVerified, match="tool_01 differs"):
        await apply(world, observed)


async def apply(world: World, observed: object) -> None:
    from han_solo.reconcile.apply import apply_plan
    from han_solo.reconcile.diff import diff
    from han_solo.reconcile.model import Observed

    assert isinstance(observed, Observed)
    await apply_plan(
        diff(world.desired, observed),
        world.desired,
        observed,
        gateway=world.letta,
        remember=world.notes,
        note=world.notes.note,
    )


async def test_an_agent_that_is_gone_stops_everything() -> None:
    world = World(SEVENTY[:2])
    world.letta.agents.clear()

    with pytest.raises(AgentGone):
        await world.sync()

    assert writes(world) == []


async def test_what_is_replaced_goes_into_the_journal() -> None:
    world = World((), spec=dataclasses.replace(SPEC, system="Ours."))
    world.letta._change(world.agent_id, system="What someone wrote by hand.")

    await world.sync()

    details = {r.kind: r.detail for r in world.notes.records}
    assert details["patch_system"] == {"previous": "What someone wrote by hand."}
    assert details["patch_llm_config"]["previous"] == {"enable_reasoner": True}


BLOCK = BlockSpec("notes", "what for", 1_000, False, "seed", ("agent",))


async def test_a_block_that_was_made_and_not_attached_is_attached_and_not_made_twice() -> None:
    world = World((), spec=dataclasses.replace(PLAIN, blocks=(BLOCK,)))
    world.letta.fail["attach_block"] = LettaUnavailable("away")
    with pytest.raises(LettaUnavailable):
        await world.sync()
    del world.letta.fail["attach_block"]

    await world.sync()

    assert len(world.letta.blocks) == 1
    assert [block.value for block in world.letta.agents[world.agent_id].blocks] == ["seed"]


async def test_a_block_that_is_gone_is_said_so_before_a_new_one_is_made() -> None:
    world = World((), spec=dataclasses.replace(PLAIN, blocks=(BLOCK,)))
    await world.sync()
    world.letta._change(world.agent_id, blocks=())
    world.letta.blocks.clear()

    with pytest.raises(PlanRefused, match="no longer has it") as caught:
        await world.sync()

    assert caught.value.reason == "block_gone"
    await world.sync()
    assert len(world.letta.blocks) == 1
