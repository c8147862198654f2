"""What someone changes in Letta by hand and a schema does not show: marks of a tool, a name."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from han_solo.reconcile.plan import AttachTool, PatchName, UpdateTool
from han_solo.reconcile.spec import SHIPPED_SPEC
from tests.unit.reconcile_world import SPEC, World, listed

ONE = (listed("alpha", a="string"),)


async def in_sync() -> World:
    world = World(ONE)
    await world.sync()
    return world


def change_tool(world: World, **changes: typing.Any) -> str:
    """Change our tool as a hand does, and return its id."""
    letta = world.letta
    tool = dataclasses.replace(letta.tools["alpha"], **changes)
    letta.tools["alpha"] = tool
    agent = letta.agents[world.agent_id]
    letta.agents[world.agent_id] = dataclasses.replace(agent, tools=(tool,))
    return tool.id


@pytest.mark.parametrize(
    "change",
    [
        {"tags": ()},
        {"tags": ("mcp:other",)},
        {"requires_approval": True},
        {"return_char_limit": 100},
        {"tags": (), "mcp_server": None},
    ],
    ids=str,
)
async def test_a_tool_that_was_changed_by_hand_is_registered_again_under_its_id(
    change: dict[str, object],
) -> None:
    world = await in_sync()
    before = world.letta.tools["alpha"]
    tool_id = change_tool(world, **change)

    plan = await world.sync()

    assert plan.steps == (UpdateTool("alpha", tool_id),)
    assert world.letta.tools["alpha"] == before
    assert (await world.plan()).in_sync


async def test_a_tool_that_lost_its_marks_and_its_place_is_registered_and_attached() -> None:
    world = await in_sync()
    tool_id = change_tool(world, tags=(), mcp_server=None)
    world.letta.detach_by_hand(world.agent_id, "alpha")

    assert (await world.sync()).steps == (UpdateTool("alpha", tool_id), AttachTool("alpha"))
    assert (await world.plan()).in_sync


async def test_a_tool_without_marks_that_is_not_ours_to_the_letter_is_left_alone() -> None:
    world = await in_sync()
    theirs = {**world.letta.tools["alpha"].json_schema, "description": "Theirs."}
    change_tool(world, tags=(), mcp_server=None, json_schema=theirs)

    plan = await world.plan()

    assert plan.steps == ()
    (finding,) = plan.conflicts
    assert finding.kind == "foreign_name"
    assert "an MCP server that is no longer named on it" in finding.sentence


async def test_a_custom_tool_of_the_same_schema_is_left_alone() -> None:
    world = await in_sync()
    change_tool(world, tags=(), mcp_server=None, tool_type="custom")

    assert [finding.kind for finding in (await world.plan()).conflicts] == ["foreign_name"]


async def test_a_renamed_agent_is_given_its_name_back() -> None:
    world = await in_sync()
    await world.letta.patch_name(world.agent_id, "other")

    plan = await world.sync()

    assert plan.steps == (PatchName("other", "ren"),)
    assert world.letta.agents[world.agent_id].name == "ren"
    assert world.notes.records[-1].detail == {"previous": "other"}
    assert (await world.plan()).in_sync


async def test_a_name_that_another_agent_bears_is_a_conflict() -> None:
    world = await in_sync()
    await world.letta.patch_name(world.agent_id, "other")
    second = world.letta.add_agent("ren")

    plan = await world.plan()

    assert plan.steps == ()
    (finding,) = plan.conflicts
    assert (finding.kind, finding.target) == ("name_taken", "name")
    assert second in finding.sentence


async def test_the_shipped_spec_renames_nobody_it_did_not_make() -> None:
    world = World(ONE, spec=dataclasses.replace(SPEC, path=SHIPPED_SPEC))
    world.letta.agents[world.agent_id] = dataclasses.replace(
        world.letta.agents[world.agent_id], name="other", tags=()
    )
    await world.sync()

    plan = await world.plan()

    assert plan.steps == ()
    assert ("not_ours", "name") in [(f.kind, f.target) for f in plan.findings]
    assert world.letta.agents[world.agent_id].name == "other"
