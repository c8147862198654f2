"""Core blocks that are empty, detached or deleted, and an agent that works without them."""

from __future__ import annotations

import dataclasses

import pytest

from han_solo.blocks.model import Author
from han_solo.blocks.service import Blocks
from han_solo.errors import PlanRefused
from han_solo.reconcile.spec import SHIPPED_SPEC, BlockSpec
from tests.integration.guard_fixtures import GUARDED, GuardWorld

STATE = BlockSpec("project_state", "d", 1000, read_only=False, seed="Seed.", writers=("operator",))
BARE = dataclasses.replace(STATE, label="open_threads", seed="")
NEW = dataclasses.replace(STATE, label="session_state", seed="No session.")
WORLD = {"spec": dataclasses.replace(GUARDED, blocks=(STATE, BARE, NEW))}

SCOTT = Author("operator", "scott")
TEXT = "han-solo 1.4 runs."


def as_operator(world: GuardWorld) -> Blocks:
    """Return the blocks, written as the operator."""
    return world.blocks_of(SCOTT)


async def replay(world: GuardWorld) -> None:
    await as_operator(world).write("project_state", TEXT)
    assert await world.check("block_presence") == (), "one without a seed that never held anything"
    before = await world.agent()

    await _emptied_behind_our_back(world)
    await _emptied_before_any_version(world)
    await _detached(world)

    after = await world.agent()
    assert dataclasses.replace(after, blocks=()) == dataclasses.replace(before, blocks=())
    assert {block.label: block.id for block in after.blocks} == {
        block.label: block.id for block in before.blocks
    }
    await _deleted(world)
    await _made_anew_by_a_sync(world)
    await _emptied_while_the_bridge_is_down(world)
    await _emptied_on_purpose(world)
    await _not_promised(world)


async def _emptied_behind_our_back(world: GuardWorld) -> None:
    await world.patch_block("project_state", value=" \n")
    (found,) = await world.check("block_presence")
    assert (found.key, found.severity) == ("project_state", "critical")
    await as_operator(world).inspect("project_state")  # as block_outside_edit does
    (found,) = await world.check("block_presence")
    assert found.detail["emptied_by"] == "outside"

    report = await world.run("block_presence")

    assert report.outcome == "repaired"
    assert (await world.block("project_state")).value == TEXT
    newest = (await as_operator(world).history("project_state"))[0]
    assert (newest.origin, newest.author_kind) == ("restored", "han_solo")


async def _emptied_before_any_version(world: GuardWorld) -> None:
    await world.patch_block("session_state", value="")

    report = await world.run("block_presence")

    assert report.outcome == "repaired"
    assert (await world.block("session_state")).value == NEW.seed


async def _detached(world: GuardWorld) -> None:
    for label in ("project_state", "open_threads"):
        await world.detach_block((await world.block(label)).id)

    report = await world.run("block_presence")

    assert report.outcome == "repaired"
    assert set(report.resolved) == {"project_state", "open_threads"}
    assert (await world.block("project_state")).value == TEXT


async def _deleted(world: GuardWorld) -> None:
    """Two blocks are gone from Letta: what they held is only in the versions."""
    before = {label: (await world.block(label)).id for label in ("project_state", "open_threads")}
    for block_id in before.values():
        await _delete(world, block_id)

    report = await world.run("block_presence")

    assert report.outcome == "repaired", report
    made = await world.block("project_state")
    assert (made.id != before["project_state"], made.value) == (True, TEXT)
    assert (await world.block("open_threads")).value == ""


async def _made_anew_by_a_sync(world: GuardWorld) -> None:
    """A block is deleted, and a sync makes it from its seed before the guard looks."""
    await _delete(world, (await world.block("project_state")).id)
    with pytest.raises(PlanRefused):
        await world.lab.sync()
    await world.lab.sync()
    assert (await world.block("project_state")).value == STATE.seed

    report = await world.run("block_presence")

    assert report.outcome == "repaired"
    assert (await world.block("project_state")).value == TEXT
    await as_operator(world).write("project_state", STATE.seed)
    assert await world.check("block_presence") == (), "written so through us"
    await as_operator(world).write("project_state", TEXT)


async def _delete(world: GuardWorld, block_id: str) -> None:
    (await world.lab.http.delete(f"/v1/blocks/{block_id}")).raise_for_status()


async def _emptied_while_the_bridge_is_down(world: GuardWorld) -> None:
    """Then nothing is attached, since no plan is carried out; an empty block is filled anyway."""
    await world.detach_block((await world.block("open_threads")).id)
    await world.patch_block("project_state", value="")
    world.lab.list_at_bridge(())

    report = await world.run("block_presence")

    assert report.resolved == ("project_state",)
    assert [row.key for row in report.findings] == ["open_threads"]
    world.lab.declare(world.lab.services.declared)
    await world.lab.sync()
    assert (await world.run("block_presence")).outcome == "clear"


async def _emptied_on_purpose(world: GuardWorld) -> None:
    await as_operator(world).write("project_state", "")

    report = await world.run("block_presence")

    assert report.outcome == "found"
    assert [row.severity for row in report.findings] == ["warning"]
    assert "scott" in report.findings[0].summary
    assert (await world.block("project_state")).value == ""


async def _not_promised(world: GuardWorld) -> None:
    """To an agent that han-solo did not make, the shipped spec promises no block."""
    await world.detach_block((await world.block("session_state")).id)
    assert "session_state" in {finding.key for finding in await world.check("block_presence")}
    await world.patch_agent(tags=[])
    spec = world.lab.services.spec
    world.use(spec=dataclasses.replace(spec, path=SHIPPED_SPEC))
    assert {finding.key for finding in await world.check("block_presence")} == {"project_state"}
