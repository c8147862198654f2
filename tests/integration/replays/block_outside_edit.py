"""Somebody wrote into a block around us, or put an older text back; nothing of it is lost."""

from __future__ import annotations

from tests.integration.guard_fixtures import GuardWorld
from tests.integration.replays.block_presence import WORLD, as_operator

__all__ = ["WORLD", "replay"]


async def replay(world: GuardWorld) -> None:
    blocks = as_operator(world)
    older = await blocks.write("project_state", "older")
    await blocks.write("project_state", "ours")
    assert await world.check("block_outside_edit") == (), "blocks never recorded are no edits"

    await world.patch_block("project_state", value="theirs")
    seen = await world.run("block_outside_edit", repair=False)
    kept = await world.run("block_outside_edit")

    assert seen.outcome == "found"
    assert kept.outcome == "repaired"
    assert (await world.block("project_state")).value == "theirs"
    newest, before = (await blocks.history("project_state"))[:2]
    assert (newest.author_kind, newest.origin) == ("outside", "adopted_outside")
    assert (await blocks.version("project_state", before.number)).value == "ours"

    await world.patch_block("project_state", value="older")
    (found,) = await world.check("block_outside_edit")
    reverted = await world.run("block_outside_edit")

    assert found.detail["older_version"] == older.version
    assert reverted.outcome == "repaired"
    assert (await world.block("project_state")).value == "theirs"
    assert (await blocks.history("project_state"))[0].origin == "revert_repaired"
