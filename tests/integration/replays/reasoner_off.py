"""A model switch turned the reasoner on, with no tokens for it, and the agent went mute."""

from __future__ import annotations

from tests.integration.guard_fixtures import GuardWorld


async def replay(world: GuardWorld) -> None:
    assert (await world.run("reasoner_off")).outcome == "clear"
    before = await world.agent()
    silent = {**before.llm_config, "enable_reasoner": True, "max_reasoning_tokens": 0}
    await world.patch_agent(llm_config=silent)

    seen = await world.run("reasoner_off", repair=False)
    repaired = await world.run("reasoner_off")

    assert seen.outcome == "found"
    assert [row.severity for row in seen.findings] == ["critical"]
    assert repaired.outcome == "repaired"
    assert repaired.remedy is not None
    assert repaired.remedy.outcome == "done"
    after = await world.agent()
    assert after.llm_config == {**before.llm_config, "max_reasoning_tokens": 0}
    assert world.without_config(after) == world.without_config(before)
    history = await world.findings.history(before.id, "reasoner_off")
    assert [row.is_open for row in history] == [False]
