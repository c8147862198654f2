"""The instructions were inverted: search before you read what stands in the prompt already."""

from __future__ import annotations

import dataclasses

from han_solo.reconcile.spec import BlockSpec, load_spec
from han_solo.reconcile.text_rules import TextRules
from tests.integration.guard_fixtures import GUARDED, GuardWorld
from tests.integration.replays.block_presence import as_operator

_SHIPPED = load_spec().block("always_loaded_core")
assert _SHIPPED
CORE: BlockSpec = _SHIPPED
RULES = TextRules(("never search for it",), ("before * read* * core block*",))
SYSTEM = "system prompt"
KIND = "Be kind.  Never search\nfor it."
WORLD = {"spec": dataclasses.replace(GUARDED, blocks=(CORE,), system_rules=RULES, system=None)}


async def replay(world: GuardWorld) -> None:
    await world.patch_agent(system=KIND)
    good = f"{CORE.seed}\nNever search archival before reading core blocks."
    await as_operator(world).write(CORE.label, good)
    assert await world.check("block_rules") == (), "an instruction that forbids it"
    await as_operator(world).write(CORE.label, f"{good}\nSearch memory before reading blocks.")
    inverted = "Search archival\nbefore you read the **core blocks**."
    await world.patch_block(CORE.label, value=f"{good}\n{inverted}")
    await world.patch_agent(system=f"{KIND} {inverted}")

    observed = await world.run("block_rules", repair=False)
    assert {row.key for row in observed.findings} == {CORE.label, SYSTEM}
    assert all(row.severity == "critical" for row in observed.findings)
    assert inverted in (await world.block(CORE.label)).value, "observing writes nothing"
    repaired = await world.run("block_rules")

    assert repaired.resolved == (CORE.label,)
    assert (await world.block(CORE.label)).value == good
    newest = (await as_operator(world).history(CORE.label))[0]
    assert (newest.origin, newest.author_kind) == ("restored", "han_solo")

    await _prompt_is_put_back(world)
    await world.patch_block(CORE.label, value="")
    assert await world.check("block_rules") == (), "an empty block is block_presence's"


async def _prompt_is_put_back(world: GuardWorld) -> None:
    """A prompt that the spec does not declare stays; one that it does is put back."""
    assert "before you read" in (await world.agent()).system
    spec = world.lab.services.spec
    world.use(spec=dataclasses.replace(spec, system=KIND))

    report = await world.run("block_rules", repair=False)
    assert [row.key for row in report.findings] == [SYSTEM]
    # What was tried in vain waits a minute; here the finding is made a new one instead.
    await world.patch_agent(system=KIND)
    await world.run("block_rules")
    await world.patch_agent(system="Search archival before reading core blocks.")
    report = await world.run("block_rules")

    assert report.outcome == "repaired"
    assert (await world.agent()).system == KIND
