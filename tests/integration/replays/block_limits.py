"""Text beyond a block's limit, which Letta takes without a word."""

from __future__ import annotations

from tests.integration.guard_fixtures import GuardWorld
from tests.integration.replays.block_presence import WORLD, as_operator

__all__ = ["WORLD", "replay"]


async def replay(world: GuardWorld) -> None:
    await as_operator(world).write("project_state", "x" * 900)
    assert await world.check("block_limits") == ()
    await as_operator(world).write("project_state", "x" * 901)
    near = await world.run("block_limits")
    await world.patch_block("project_state", value="x" * 1001)
    over = await world.run("block_limits")
    await as_operator(world).write("project_state", "short")
    gone = await world.run("block_limits")

    assert [row.severity for row in near.findings] == ["warning"]
    assert [row.severity for row in over.findings] == ["critical"]
    assert [row.opened_at for row in over.findings] == [row.opened_at for row in near.findings]
    assert gone.outcome == "clear"
    assert gone.resolved == ("project_state",)
