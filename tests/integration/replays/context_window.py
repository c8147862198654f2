"""Somebody set the model's handle anew, and Letta rebuilt all of its settings."""

from __future__ import annotations

from tests.integration.guard_fixtures import MODEL, GuardWorld


async def replay(world: GuardWorld) -> None:
    before = await world.agent()
    await world.patch_agent(model=MODEL.handle)
    rebuilt = (await world.agent()).llm_config
    assert rebuilt["context_window"] != MODEL.context_window

    (found,) = await world.check("context_window")
    repaired = await world.run("context_window")

    assert found.severity == "critical"
    assert found.detail == {"found": rebuilt["context_window"], "declared": 200_000}
    assert repaired.outcome == "repaired"
    after = await world.agent()
    assert {name: after.llm_config[name] for name in MODEL.settings()} == MODEL.settings()
    assert world.without_config(after) == world.without_config(before)
    assert await world.check("reasoner_off") == ()
    assert await world.check("model_settings") == ()
