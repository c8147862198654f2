"""The prompt demanded a search before every message, and no step was left for the answer."""

from __future__ import annotations

import contextlib
import dataclasses

from han_solo.errors import HanSoloError
from han_solo.reconcile.spec import BlockSpec
from tests.integration.guard_fixtures import GUARDED, GuardWorld
from tests.integration.replays.block_presence import as_operator
from tests.integration.turn_fixtures import script

CALL = {"call": "tool_01", "args": {"a": "x"}}
PROMPT = "Never search before each reply; search when it is needed."
DEMAND = "You are Ren.\nSearch your archival memory before every message you send."
CORE = BlockSpec("core", "d", 1000, read_only=False, seed="Be kind.", writers=("operator",))
WORLD = {"spec": dataclasses.replace(GUARDED, system=PROMPT, blocks=(CORE,))}


async def replay(world: GuardWorld) -> None:
    assert await world.check("step_budget") == ()
    await world.patch_agent(system=DEMAND)
    await as_operator(world).write("core", "Always search your memory before you reply.")
    with contextlib.suppress(HanSoloError):
        await world.services.turns.send(script(*[CALL] * 8), sender="test", max_steps=6)
    await _say_from_elsewhere(world)

    report = await world.run("step_budget", repair=False)

    found = {row.key: row.detail for row in report.findings}
    assert set(found) == {"turns", "instruction:system prompt", "instruction:core"}
    assert found["instruction:system prompt"] == {"where": "system prompt", "line": 2}
    spent = {**found["turns"]}
    assert spent.pop("last")
    assert spent == {"turns": 2, "of": 2, "steps": 3, "tools": {"tool_01": 9}}
    assert (await world.agent()).system == DEMAND, "observing writes nothing"

    repaired = await world.run("step_budget")

    assert repaired.resolved == ("instruction:system prompt",)
    assert (await world.agent()).system == PROMPT


async def _say_from_elsewhere(world: GuardWorld) -> None:
    """Send a message around us, as Letta's own page does."""
    message = {"role": "user", "content": script(*[CALL] * 8)}
    answer = await world.lab.http.post(
        f"/v1/agents/{world.agent_id}/messages", json={"messages": [message], "max_steps": 3}
    )
    answer.raise_for_status()
