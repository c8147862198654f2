"""Copies of the agent's id differ, and then the agent itself is gone."""

from __future__ import annotations

from tests.integration.guard_fixtures import GuardWorld


async def replay(world: GuardWorld) -> None:
    assert await world.check("agent_identity") == ()
    copy = await world.lab.gateway.create_agent(
        name="ren", model="openai-proxy/rehearsal", tags=(world.services.reconcile.spec.tag,)
    )
    (namesake,) = await world.check("agent_identity")
    assert (namesake.key, namesake.detail) == ("namesakes", {"others": [copy.id]})

    world.use(agent_id=copy.id)
    report = await world.run("agent_identity")
    assert {row.key for row in report.findings} == {"copies_differ", "namesakes"}
    await world.patch_agent(
        llm_config={**(await world.agent()).llm_config, "enable_reasoner": True}
    )
    held = await world.run("reasoner_off")
    assert held.outcome == "found", "nothing is repaired while it may be another agent"
    assert held.remedy is not None
    assert held.remedy.outcome == "refused"
    world.use(agent_id=None)
    await world.run("agent_identity")
    assert (await world.run("reasoner_off")).outcome == "repaired"

    await world.delete_agent(world.agent_id)
    gone = await world.run("agent_identity")
    blind = await world.run("reasoner_off")
    assert {row.key: row.severity for row in gone.findings} == {"gone": "critical"}
    assert (blind.outcome, blind.findings) == ("blind", ())
