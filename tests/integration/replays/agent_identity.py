"""Copies of the agent's id differ, and then the agent itself is gone."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from han_solo.timers.model import InstalledTimer, TimersView
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

    await _replay_timers(world)

    await world.delete_agent(world.agent_id)
    gone = await world.run("agent_identity")
    blind = await world.run("reasoner_off")
    assert {row.key: row.severity for row in gone.findings} == {"gone": "critical"}
    assert (blind.outcome, blind.findings) == ("blind", ())


async def _replay_timers(world: GuardWorld) -> None:
    """A nightly job's plist holds the id of an agent of before, then other things of before."""
    home, python = Path("/srv/han-solo"), Path("/srv/venv/bin/python")
    plist = Path("/srv/LaunchAgents/han-solo.job.dream.plist")
    timer = InstalledTimer("launchd", "dream", (plist,), home, python, world.agent_id)

    def install(**changes: object) -> None:
        view = TimersView(home, python, (dataclasses.replace(timer, **changes),))
        world.services = dataclasses.replace(world.services, load_timers=lambda: view)

    install()
    assert {row.key for row in await world.check("agent_identity")} == {"namesakes"}
    install(agent_id="agent-of-before")
    await world.run("agent_identity")
    (stranger,) = [row for row in await world.check("agent_identity") if "timer" in row.key]
    assert (stranger.key, stranger.severity) == ("timer_dream", "critical")
    assert f"its agent is agent-of-before, and here it is {world.agent_id}" in stranger.summary
    assert str(plist) in stranger.hint
    await world.patch_agent(
        llm_config={**(await world.agent()).llm_config, "enable_reasoner": True}
    )
    held = await world.run("reasoner_off")
    assert held.remedy is not None
    assert held.remedy.outcome == "refused"
    for changes, words in (
        ({"home": Path("/srv/other"), "agent_id": "another"}, "its home is /srv/other"),
        ({"interpreter": Path("/srv/old/bin/python")}, "is not there any more"),
        ({"interpreter": Path("/bin/sh")}, "its interpreter is /bin/sh"),
        ({"fault": "it is torn."}, "can not be compared: it is torn."),
    ):
        install(**changes)
        (found,) = [row for row in await world.check("agent_identity") if "timer" in row.key]
        assert words in found.summary
        assert found.severity == "warning"
    install()
    await world.run("agent_identity")
    assert (await world.run("reasoner_off")).outcome == "repaired"
