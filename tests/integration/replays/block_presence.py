"""The block ``project_state`` was empty, and the agent worked without it; another was detached."""

from __future__ import annotations

import dataclasses

from han_solo.blocks.model import Author
from han_solo.blocks.service import Blocks
from han_solo.reconcile.spec import BlockSpec
from tests.integration.guard_fixtures import GUARDED, GuardWorld

STATE = BlockSpec("project_state", "d", 1000, read_only=False, seed="Seed.", writers=("operator",))
OTHER = dataclasses.replace(STATE, label="open_threads", seed="")
WORLD = {"spec": dataclasses.replace(GUARDED, blocks=(STATE, OTHER))}

SCOTT = Author("operator", "scott")


def as_operator(world: GuardWorld) -> Blocks:
    """Return the blocks, written as the operator."""
    return world.blocks_of(SCOTT)


async def replay(world: GuardWorld) -> None:
    await as_operator(world).write("project_state", "han-solo 1.4 runs.")
    assert await world.check("block_presence") == (), "an empty block that never held anything"
    before = await world.agent()

    await _emptied_behind_our_back(world)
    await _detached(world)

    after = await world.agent()
    assert dataclasses.replace(after, blocks=()) == dataclasses.replace(before, blocks=())
    assert {block.label: block.id for block in after.blocks} == {
        block.label: block.id for block in before.blocks
    }
    await _emptied_on_purpose(world)


async def _emptied_behind_our_back(world: GuardWorld) -> None:
    await world.patch_block("project_state", value="")
    (found,) = await world.check("block_presence")
    assert found.severity == "critical"

    report = await world.run("block_presence")

    assert report.outcome == "repaired"
    assert (await world.block("project_state")).value == "han-solo 1.4 runs."
    newest = (await as_operator(world).history("project_state"))[0]
    assert newest.origin == "restored"


async def _detached(world: GuardWorld) -> None:
    block = await world.block("project_state")
    await world.detach_block(block.id)

    report = await world.run("block_presence")

    assert report.outcome == "repaired"
    assert (await world.block("project_state")).value == "han-solo 1.4 runs."


async def _emptied_on_purpose(world: GuardWorld) -> None:
    await as_operator(world).write("project_state", "")

    report = await world.run("block_presence")

    assert report.outcome == "found"
    assert [row.severity for row in report.findings] == ["warning"]
    assert (await world.block("project_state")).value == ""
