"""What ``sync-tools`` prints: every step and finding of a plan is in it, many names are folded."""

from __future__ import annotations

import dataclasses
import io

from rich.console import Console, RenderableType

from han_solo.cli.sync_view import build_outcome_views, build_plan_views, build_probe_view
from han_solo.reconcile.ensure import Outcome
from han_solo.reconcile.plan import Plan
from han_solo.reconcile.probe import Probe, find_new
from han_solo.reconcile.spec import BlockSpec, ToolRule
from tests.unit.reconcile_world import SPEC, URL, World, listed

SEVENTY = tuple(listed(f"tool_{number:02}") for number in range(70))


def render(*views: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=200)
    for view in views:
        console.print(view)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def show(world: World, plan: Plan | None) -> str:
    return render(*build_plan_views(world.spec, world.declared, plan))


async def test_a_first_sync_of_seventy_fits_on_a_screen() -> None:
    world = World(SEVENTY)

    text = show(world, await world.plan())

    assert f"han-solo at {URL}, with its 70 tools" in text
    assert "and 58 more" in text
    assert len(text.splitlines()) < 20


async def test_every_kind_of_step_is_named() -> None:
    block = BlockSpec("notes", "what for", 1_000, False, "seed", ("agent",))
    rules = (ToolRule("exit_loop", "tool_00"),)
    spec = dataclasses.replace(SPEC, blocks=(block,), tool_rules=rules, system="You are ren.")
    world = World(SEVENTY[:2], spec=spec)

    text = show(world, await world.plan())

    for words in ("register the bridge", "attach", "make block", "set model settings"):
        assert words in text
    for words in ("enable_reasoner=False", "set tool rules", "12 characters in place of 0"):
        assert words in text


async def test_what_is_not_done_is_told_with_why_and_what_helps() -> None:
    world = World(SEVENTY[:2])
    await world.sync()
    world.letta.add_tool("theirs")
    world.declare(*SEVENTY[:2], listed("theirs"))

    text = show(world, await world.plan())

    assert "theirs belongs to a custom tool" in text
    assert "Rename one of the two" in text


async def test_findings_of_one_kind_are_one_row() -> None:
    world = World(SEVENTY[:2])
    await world.sync()
    for name in ("one", "two", "three"):
        world.letta.add_tool(name)
        world.letta.attach_by_hand(world.agent_id, name)

    text = show(world, await world.plan())

    assert "one, two, three" in text
    assert text.count("--prune") == 1


async def test_what_is_in_sync_is_one_line() -> None:
    world = World(SEVENTY)
    await world.sync()

    assert show(world, await world.plan()) == "Nothing to do: ren has all 70 tools as declared.\n"


async def test_a_conflict_is_not_called_nothing_to_do() -> None:
    world = World(SEVENTY[:2])
    await world.sync()
    world.letta.add_tool("theirs")
    world.declare(*SEVENTY[:2], listed("theirs"))

    text = show(world, await world.plan())

    assert "Nothing to do" not in text
    assert "A sync can do nothing here: one conflict is left for someone to decide." in text


async def test_a_rename_tells_both_names() -> None:
    world = World(SEVENTY[:2])
    await world.sync()
    await world.letta.patch_name(world.agent_id, "other")

    assert "ren, in place of other" in show(world, await world.plan())


def test_an_agent_that_is_not_there_is_described() -> None:
    assert "There is no agent 'ren' yet" in show(World(SEVENTY), None)


async def test_an_outcome_with_a_conflict_is_not_in_sync() -> None:
    world = World(SEVENTY[:2])
    plan = await world.sync()
    world.letta.add_tool("theirs")
    world.declare(*SEVENTY[:2], listed("theirs"))
    outcome = Outcome(world.agent_id, None, plan, await world.plan(), 1_234)

    text = render(*build_outcome_views(outcome))

    assert "Done: 4 steps in 1.2 s" in text
    assert "theirs (foreign_name)" in text


def test_probes_tell_their_outcome() -> None:
    text = render(
        build_probe_view((Probe("a", "worked", "12"), Probe("b", "skipped", "it writes")))
    )

    assert "it writes" in text
    assert render(build_probe_view(())) == "No new tools to probe.\n"


async def test_new_tools_are_those_that_a_plan_registers_updates_or_attaches() -> None:
    world = World(SEVENTY[:3])
    assert find_new(await world.sync()) == ("tool_00", "tool_01", "tool_02")

    world.letta.detach_by_hand(world.agent_id, "tool_00")
    world.declare(SEVENTY[0], listed("tool_01", "New."), SEVENTY[2])
    assert find_new(await world.plan()) == ("tool_00", "tool_01")
