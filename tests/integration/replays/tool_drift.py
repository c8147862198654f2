"""Tools drop off, one by one and silently; the rest of the agent stays as it is."""

from __future__ import annotations

from tests.integration.guard_fixtures import GuardWorld


async def replay(world: GuardWorld) -> None:
    assert await world.check("tool_drift") == ()
    theirs = await world.lab.make_custom_tool("theirs")
    await world.lab.gateway.attach_tool(world.agent_id, theirs)
    before = await world.lab.attached()
    await world.lab.gateway.detach_tool(world.agent_id, before["tool_01"])
    await world.patch_tool("tool_02", return_char_limit=10)

    seen = await world.run("tool_drift", repair=False)
    repaired = await world.run("tool_drift")

    assert {row.key for row in seen.findings} == {"attach_tool:tool_01", "update_tool:tool_02"}
    assert repaired.outcome == "repaired"
    assert await world.lab.attached() == before
    assert await world.check("tool_drift") == ()
    world.lab.list_at_bridge(())
    (refused,) = await world.check("tool_drift")
    assert refused.key.startswith("refused:bridge_")
