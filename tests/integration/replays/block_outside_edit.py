"""Somebody wrote into a block around us; what they wrote is kept, and so is what was there."""

from __future__ import annotations

from tests.integration.guard_fixtures import GuardWorld
from tests.integration.replays.block_presence import WORLD, as_operator

__all__ = ["WORLD", "replay"]


async def replay(world: GuardWorld) -> None:
    blocks = as_operator(world)
    await blocks.write("project_state", "ours")
    assert (await world.run("block_outside_edit")).outcome in {"clear", "repaired"}
    assert await world.check("block_outside_edit") == ()
    await world.patch_block("project_state", value="theirs")

    seen = await world.run("block_outside_edit", repair=False)
    kept = await world.run("block_outside_edit")

    assert seen.outcome == "found"
    assert kept.outcome == "repaired"
    assert (await world.block("project_state")).value == "theirs"
    newest, before = (await blocks.history("project_state"))[:2]
    assert (newest.author_kind, newest.origin) == ("outside", "adopted_outside")
    assert (await blocks.version("project_state", before.number)).value == "ours"
