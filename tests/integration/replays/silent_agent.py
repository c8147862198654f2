"""The agent says nothing, in each of the ways that Letta calls a success; and then it speaks."""

from __future__ import annotations

import contextlib
from typing import Any

import httpx

from han_solo.errors import HanSoloError
from han_solo.letta.gateway import LettaGateway
from han_solo.turns.service import Turns
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
    await _said_by_us(world)
    await _said_by_others(world)
    await _given_up_by_its_sender(world)
    await world.require_approval("tool_00")
    await _say(world, CALL)
    (waiting,) = await world.check("silent_agent")
    assert (waiting.key, waiting.severity) == ("pending_approval", "critical")


async def _said_by_us(world: GuardWorld) -> None:
    for cause, (steps, most) in TURNS.items():
        await _say(world, *steps, max_steps=most)
        report = await world.run("silent_agent")
        assert cause in {row.key for row in report.findings}, cause
    await _try_while_letta_is_away(world)
    report = await world.run("silent_agent")
    assert {row.key for row in report.findings} == set(TURNS)
    assert {row.severity for row in report.findings} == {"critical"}
    spent = next(row for row in report.findings if row.key == "max_steps")
    assert (spent.detail["steps"], spent.detail["tools"]) == (2, ["tool_00", "tool_00"])
    assert "tool_00" in spent.summary
    mute = next(row for row in report.findings if row.key == "thinking_only")
    assert "enable_reasoner False" in mute.summary

    await _say(world, {"say": "Here I am."})
    assert (await world.run("silent_agent")).outcome == "clear"


async def _said_by_others(world: GuardWorld) -> None:
    for cause, (steps, most) in TURNS.items():
        await _say_from_elsewhere(world, *steps, max_steps=most)
        (found,) = await world.check("silent_agent")
        assert (found.key, found.severity) == (cause, "warning")
        assert found.detail["sender"] is None
        await _say_from_elsewhere(world, {"say": "Yes?"})
        assert await world.check("silent_agent") == ()


async def _given_up_by_its_sender(world: GuardWorld) -> None:
    """Nobody heard the answer and nobody has sent anything since: Letta's run tells what came."""
    await _say(world, {"empty": True})
    async with world.lab.services.db.transaction() as connection:
        await connection.execute(
            "UPDATE han_solo.turns SET outcome = 'unknown', cause = NULL, run_id = NULL"
            " WHERE id = (SELECT max(id) FROM han_solo.turns)"
        )
    (found,) = await world.check("silent_agent")
    assert (found.key, found.severity) == ("empty_output", "warning")
    await _say(world, {"say": "Here I am."})
    assert await world.check("silent_agent") == ()


async def _say(world: GuardWorld, *steps: Any, max_steps: int | None = None) -> None:
    with contextlib.suppress(HanSoloError):
        await world.services.turns.send(script(*steps), sender="test", max_steps=max_steps)


async def _try_while_letta_is_away(world: GuardWorld) -> None:
    """A message that was never sent says nothing of the agent, so it closes no finding."""
    async with LettaGateway.connect("http://127.0.0.1:1", None) as away:
        with contextlib.suppress(HanSoloError):
            await Turns(world.lab.services.db, away, world.agent_id).send("hello", sender="test")


async def _say_from_elsewhere(world: GuardWorld, *steps: Any, max_steps: int | None = None) -> None:
    """Send a message around us, as Letta's own page does."""
    body: dict[str, Any] = {"messages": [{"role": "user", "content": script(*steps)}]}
    if max_steps is not None:
        body["max_steps"] = max_steps
    with contextlib.suppress(httpx.HTTPError):
        await world.lab.http.post(f"/v1/agents/{world.agent_id}/messages", json=body)
