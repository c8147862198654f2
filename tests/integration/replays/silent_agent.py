"""The agent says nothing, in each of the ways that Letta calls a success; and then it speaks."""

from __future__ import annotations

import contextlib
from typing import Any

import httpx

from han_solo.errors import HanSoloError
from tests.integration.guard_fixtures import GuardWorld
from tests.integration.turn_fixtures import script

CALL = {"call": "tool_00", "args": {"a": "x"}}
TURNS: dict[str, tuple[list[dict[str, Any]], int | None]] = {
    "max_steps": ([CALL] * 4, 2),
    "empty_output": ([{"empty": True}], None),
    "thinking_only": ([{"thinking": "Hm."}], None),
    "provider_error": ([{"error": 500}], None),
}


async def replay(world: GuardWorld) -> None:
    assert await world.check("silent_agent") == ()
    for cause, (steps, most) in TURNS.items():
        await _say(world, *steps, max_steps=most)
        report = await world.run("silent_agent")
        assert cause in {row.key for row in report.findings}, cause
    assert {row.key for row in report.findings} == set(TURNS)
    assert {row.severity for row in report.findings} == {"critical"}
    spent = next(row for row in report.findings if row.key == "max_steps")
    assert (spent.detail["steps"], set(spent.detail["tools"])) == (2, {"tool_00"})

    await _say(world, {"say": "Here I am."})
    assert (await world.run("silent_agent")).outcome == "clear"

    await _from_elsewhere(world, {"empty": True})
    (foreign,) = await world.check("silent_agent")
    assert (foreign.key, foreign.severity) == ("empty_output", "warning")
    await _from_elsewhere(world, {"say": "Yes?"})
    assert await world.check("silent_agent") == ()

    await world.require_approval("tool_00")
    await _say(world, CALL)
    (waiting,) = await world.check("silent_agent")
    assert waiting.key == "pending_approval"


async def _say(world: GuardWorld, *steps: Any, max_steps: int | None = None) -> None:
    with contextlib.suppress(HanSoloError):
        await world.services.turns.send(script(*steps), sender="test", max_steps=max_steps)


async def _from_elsewhere(world: GuardWorld, *steps: Any) -> None:
    """Send a message around us, as Letta's own page does."""
    with contextlib.suppress(httpx.HTTPError):
        await world.lab.http.post(
            f"/v1/agents/{world.agent_id}/messages",
            json={"messages": [{"role": "user", "content": script(*steps)}]},
        )
