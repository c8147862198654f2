"""The instructions were inverted: search before you read what stands in the prompt already."""

from __future__ import annotations

import dataclasses

from han_solo.reconcile.spec import BlockSpec
from han_solo.reconcile.text_rules import TextRules
from tests.integration.guard_fixtures import GUARDED, GuardWorld
from tests.integration.replays.block_presence import as_operator

RULES = TextRules(("never search for it",), ("before reading core blocks",))
CORE = BlockSpec(
    "always_loaded_core",
    "d",
    1000,
    read_only=False,
    seed="What is here is known: read it, never search for it.",
    writers=("operator",),
    rules=RULES,
)
WORLD = {"spec": dataclasses.replace(GUARDED, blocks=(CORE,), system_rules=RULES, system=None)}


async def replay(world: GuardWorld) -> None:
    await world.patch_agent(system="Be kind.  Never search\nfor it.")
    await as_operator(world).write("always_loaded_core", f"{CORE.seed} Version two.")
    assert await world.check("block_rules") == ()
    await world.patch_block(
        "always_loaded_core", value="Search archival before reading core blocks."
    )
    await world.patch_agent(system="Search archival before reading core blocks.")

    observed = await world.run("block_rules", repair=False)
    repaired = await world.run("block_rules")

    assert {row.key for row in observed.findings} == {"always_loaded_core", "system prompt"}
    assert all(row.severity == "critical" for row in observed.findings)
    assert "always_loaded_core" in repaired.resolved
    assert (await world.block("always_loaded_core")).value == f"{CORE.seed} Version two."
    assert [row.key for row in repaired.findings] == ["system prompt"]
    await world.patch_agent(system="Never search for it.")
    assert (await world.run("block_rules")).outcome == "clear"
