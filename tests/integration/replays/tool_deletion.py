"""All tools of the agent were deleted through Letta's API, and every agent lost them at once."""

from __future__ import annotations

from datetime import timedelta

from han_solo.guard_context import CheckContext
from tests.integration.guard_fixtures import GuardWorld


async def replay(world: GuardWorld) -> None:
    lab = world.lab
    theirs = await lab.make_custom_tool("theirs")
    await lab.gateway.attach_tool(world.agent_id, theirs)
    before = await lab.attached()
    second = await world.add_agent("maya", tools=("tool_00", "tool_02"))
    bystander = await world.make_stranger(tools=("tool_01",))
    assert await world.check("tool_deletion") == ()
    await world.run("tool_deletion")

    for name in ("tool_00", "tool_01", "tool_02"):
        await world.delete_tool(before[name])
    assert set(await lab.attached()) == {"theirs"}
    seen = await world.run("tool_deletion", repair=False)
    repaired = await world.run("tool_deletion")

    assert {row.key: row.detail["agents"] for row in seen.findings} == {
        "tool_00": ["maya", "ren"],
        "tool_01": ["ren"],
        "tool_02": ["maya", "ren"],
    }
    assert {row.detail["tool_ids"][0] for row in seen.findings} == {
        before[name] for name in ("tool_00", "tool_01", "tool_02")
    }
    assert all(row.detail["missing_since"] for row in seen.findings)
    assert repaired.outcome == "repaired"
    assert repaired.remedy is not None
    assert "maya 2, ren 3" in repaired.remedy.what
    assert set(await lab.attached()) == set(before)
    assert (await lab.attached())["theirs"] == theirs
    assert await world.tools_of(second) == {"tool_00", "tool_02"}
    assert await world.tools_of(bystander) == set(), "an agent that is not ours is left alone"
    history = await world.findings.history(world.agent_id, "tool_deletion")
    assert len(history) == 3
    assert not any(row.is_open for row in history)

    await _replay_those_that_stay_away(world, theirs)


async def _replay_those_that_stay_away(world: GuardWorld, theirs: str) -> None:
    """One of somebody else's, and one of ours that no file declares any more."""
    ours = (await world.lab.attached())["tool_02"]
    world.use(declared=world.lab.services.declared[:2])
    await world.delete_tool(theirs)
    await world.delete_tool(ours)

    report = await world.run("tool_deletion")

    assert {row.key: row.severity for row in report.findings} == {
        "theirs": "warning",
        "tool_02": "warning",
    }
    assert set(await world.lab.attached()) == {"tool_00", "tool_01"}
    later = world.services.clock.now() + timedelta(days=8)
    context = CheckContext(world.services, world.agent_id, now=later)
    assert await world.guards["tool_deletion"].check(context) == (), "meant, after a week"
