"""Settings of another model stayed behind: they are named, each for itself, and left alone."""

from __future__ import annotations

from tests.integration.guard_fixtures import GuardWorld


async def replay(world: GuardWorld) -> None:
    assert await world.check("model_settings") == ()
    before = await world.agent()
    left = {"temperature": 1.0, "max_tokens": 16_384, "model_endpoint": "http://elsewhere.test/v1"}
    await world.patch_agent(llm_config={**before.llm_config, **left})

    report = await world.run("model_settings")

    assert report.outcome == "found"
    assert {row.key for row in report.findings} == set(left)
    assert report.remedy is None
    await world.patch_agent(llm_config=dict(before.llm_config))
    cleared = await world.run("model_settings")
    assert set(cleared.resolved) == set(left)
