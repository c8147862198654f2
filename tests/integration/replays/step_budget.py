"""The prompt demanded a search before every message, and no step was left for the answer."""

from __future__ import annotations

import contextlib

from han_solo.errors import HanSoloError
from tests.integration.guard_fixtures import GuardWorld
from tests.integration.turn_fixtures import script

CALL = {"call": "tool_01", "args": {"a": "x"}}


async def replay(world: GuardWorld) -> None:
    await world.patch_agent(system="Never search before each reply; search when it is needed.")
    assert await world.check("step_budget") == ()
    await world.patch_agent(
        system="You are Ren.\nSearch your archival memory before every message you send."
    )
    with contextlib.suppress(HanSoloError):
        await world.services.turns.send(script(*[CALL] * 8), sender="test", max_steps=6)

    report = await world.run("step_budget")

    assert {row.key for row in report.findings} == {"turns", "instruction:system prompt"}
    turns, demand = sorted(report.findings, key=lambda row: row.key, reverse=True)
    assert turns.detail == {"turns": 1, "of": 1, "tools": ["tool_01"]}
    assert demand.detail == {"where": "system prompt", "line": 2}
