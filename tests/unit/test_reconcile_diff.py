"""What a plan holds, and what it refuses: one rule a test, against the in-memory Letta."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from han_solo.reconcile import plan as plans
from han_solo.reconcile.plan import (
    AttachBlock,
    AttachTool,
    CreateBlock,
    DetachTool,
    PatchLlmConfig,
    PatchSystem,
    PatchToolRules,
    RegisterServer,
    RegisterTool,
    UpdateBlockMeta,
    UpdateServer,
    UpdateTool,
)
from han_solo.reconcile.spec import SHIPPED_SPEC, BlockSpec, ToolRule
from tests.unit.reconcile_world import SPEC, TOKEN, URL, World, listed

TWO = (listed("alpha", x="string"), listed("beta"))


def block(label: str, **fields: typing.Any) -> BlockSpec:
    made = BlockSpec(label, "what it is for", 1_000, False, "seed", ("agent",))
    return dataclasses.replace(made, **fields)


async def in_sync(declared: tuple[typing.Any, ...] = TWO, **fields: typing.Any) -> World:
    world = World(declared, **fields)
    await world.sync()
    return world


def test_there_is_no_step_that_deletes() -> None:
    names = [step.__name__ for step in typing.get_args(plans.Step)]

    assert names
    assert not [name for name in names if "delete" in name.lower() or "remove" in name.lower()]


async def test_a_first_plan_is_one_registration_and_one_attach_a_tool() -> None:
    plan = await World(TWO).plan()

    assert plan.steps[:3] == (
        RegisterServer("han-solo", URL, ("alpha", "beta")),
        AttachTool("alpha"),
        AttachTool("beta"),
    )


async def test_a_plan_for_what_is_in_sync_is_empty() -> None:
    world = await in_sync()

    assert (await world.plan()).in_sync


async def test_a_tool_detached_by_hand_comes_back() -> None:
    world = await in_sync()
    world.letta.detach_by_hand(world.agent_id, "beta")

    assert (await world.plan()).steps == (AttachTool("beta"),)


async def test_a_tool_deleted_by_hand_is_registered_and_attached_again() -> None:
    world = await in_sync()
    world.letta.delete_tool("beta")

    assert (await world.plan()).steps == (RegisterTool("beta"), AttachTool("beta"))


@pytest.mark.parametrize(
    "changed", [listed("alpha", "Do it well.", x="string"), listed("alpha", y="string")]
)
async def test_a_changed_tool_is_updated_and_nothing_else(changed: typing.Any) -> None:
    world = await in_sync()
    world.declare(changed, TWO[1])

    assert (await world.plan()).steps == (UpdateTool("alpha", world.letta.tools["alpha"].id),)


async def test_a_tool_no_longer_declared_stays_and_is_reported() -> None:
    world = await in_sync()
    world.declare(TWO[0])

    plan = await world.plan()

    assert plan.steps == ()
    assert [(f.kind, f.target) for f in plan.findings] == [("undeclared_tool", "beta")]
    assert plan.in_sync


async def test_prune_detaches_what_is_not_declared() -> None:
    world = await in_sync()
    world.declare(TWO[0])

    steps = (await world.plan("prune")).steps

    assert steps == (DetachTool("beta", world.letta.tools["beta"].id, "undeclared"),)


async def test_prune_never_touches_a_declared_or_a_kept_tool() -> None:
    spec = dataclasses.replace(SPEC, builtin_tools=("web_search",))
    world = World(TWO, spec=spec)
    world.letta.add_tool("web_search", "letta_builtin")
    await world.sync()

    assert world.attached() == {"alpha", "beta", "web_search"}
    assert (await world.plan("prune")).steps == ()


@pytest.mark.parametrize("server", [None, "other"])
async def test_a_name_of_someone_else_forbids_the_first_registration(server: str | None) -> None:
    world = World(TWO)
    world.letta.add_tool("beta", server=server)

    plan = await world.plan()

    assert plan.refusal
    assert plan.refusal.reason == "name_collision"
    assert "beta" in plan.refusal.sentence
    assert plan.steps == ()


@pytest.mark.parametrize("server", [None, "other"])
async def test_a_name_of_someone_else_is_reported_and_not_registered(server: str | None) -> None:
    world = await in_sync()
    world.letta.add_tool("gamma", server=server)
    world.declare(*TWO, listed("gamma"), listed("delta"))

    plan = await world.plan()

    assert plan.steps == (RegisterTool("delta"), AttachTool("delta"))
    assert [(f.kind, f.target) for f in plan.conflicts] == [("foreign_name", "gamma")]


async def test_two_rows_of_one_name_are_reported_and_not_registered() -> None:
    world = await in_sync()
    observed = await world.observe()
    twin = dataclasses.replace(observed.named("alpha")[0], id="tool-twin", fingerprint="other")
    observed = dataclasses.replace(observed, tools=(twin, *observed.tools))

    plan = plans_of(world, observed)

    assert [(f.kind, f.target) for f in plan.conflicts] == [("duplicate_name", "alpha")]
    assert not [step for step in plan.steps if isinstance(step, UpdateTool | RegisterTool)]


def plans_of(world: World, observed: typing.Any) -> plans.Plan:
    from han_solo.reconcile.diff import diff

    return diff(world.desired, observed)


@pytest.mark.parametrize("fault", ["down", "empty", "token"])
async def test_a_cold_bridge_refuses_the_plan(fault: str) -> None:
    world = await in_sync()
    bridge = world.letta.bridges[URL]
    world.letta.detach_by_hand(world.agent_id, "beta")
    match fault:
        case "down":
            bridge.is_up = False
        case "empty":
            bridge.tools = ()
        case "token":
            bridge.token = "another"

    plan = await world.plan("prune")

    assert plan.refusal
    assert plan.refusal.reason == "bridge_cold"
    assert plan.steps == ()


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        (TWO[:1], "it lacks beta"),
        ((*TWO, listed("gamma")), "it has besides gamma"),
        ((TWO[0], listed("beta", "Older.")), "another schema or description for beta"),
    ],
)
async def test_a_bridge_that_lists_something_else_refuses_the_plan(
    lists: typing.Any, words: str
) -> None:
    world = await in_sync()
    world.letta.bridges[URL].tools = lists
    world.letta.detach_by_hand(world.agent_id, "beta")

    plan = await world.plan("prune")

    assert plan.refusal
    assert plan.refusal.reason == "bridge_differs"
    assert words in plan.refusal.sentence
    assert plan.steps == ()


async def test_a_server_name_that_someone_else_has_refuses_the_plan() -> None:
    world = World(TWO)
    world.letta.add_server("han-solo", "http://elsewhere.test/mcp", "their token")

    plan = await world.plan()

    assert plan.refusal
    assert plan.refusal.reason == "server_name_taken"


async def test_a_bridge_that_moved_gets_its_new_address() -> None:
    world = await in_sync()
    world.letta.bridges["http://new.test/mcp"] = world.letta.bridges[URL]
    world.url = "http://new.test/mcp"

    steps = (await world.plan()).steps

    assert steps == (UpdateServer(world.letta.servers["han-solo"].id, "han-solo", ("url",)),)


async def test_a_rotated_token_is_given_to_letta() -> None:
    world = await in_sync()
    world.token = "hs_new"
    world.letta.bridges[URL].token = "hs_new"

    steps = (await world.plan()).steps

    assert steps == (UpdateServer(world.letta.servers["han-solo"].id, "han-solo", ("token",)),)


async def test_a_moved_bridge_with_a_new_token_is_ours_when_we_remember_it() -> None:
    world = await in_sync()
    world.letta.bridges["http://new.test/mcp"] = world.letta.bridges[URL]
    world.url, world.token = "http://new.test/mcp", "hs_new"
    world.letta.bridges[world.url].token = "hs_new"

    (step,) = (await world.plan()).steps

    assert isinstance(step, UpdateServer)
    assert step.changes == ("url", "token")


MEMORY_TOOLS = ("memory_insert", "core_memory_append")


async def with_memory_tools() -> World:
    world = await in_sync()
    for name in (*MEMORY_TOOLS, "conversation_search"):
        world.letta.add_tool(name, "letta_core")
        world.letta.attach_by_hand(world.agent_id, name)
    return world


async def test_lettas_memory_tools_are_a_conflict_and_stay() -> None:
    world = await with_memory_tools()

    plan = await world.plan()

    assert plan.steps == ()
    (conflict,) = plan.conflicts
    assert conflict.kind == "builtin_memory_tools"
    assert conflict.target == "core_memory_append, memory_insert"
    assert "--detach-builtin-memory" in conflict.hint


async def test_with_consent_exactly_the_memory_tools_are_detached() -> None:
    world = await with_memory_tools()

    await world.sync("detach_builtin_memory")

    assert world.attached() == {"alpha", "beta", "conversation_search"}
    assert set(MEMORY_TOOLS) <= set(world.letta.tools)


async def test_a_memory_tool_that_the_spec_keeps_is_a_conflict_that_the_spec_mends() -> None:
    spec = dataclasses.replace(SPEC, builtin_tools=("memory_insert",))
    world = World(TWO, spec=spec)
    world.letta.add_tool("memory_insert", "letta_core")
    await world.sync()

    plan = await world.plan("detach_builtin_memory")

    assert plan.steps == ()
    assert "[tools] builtin" in plan.conflicts[0].hint


async def test_a_kept_builtin_that_letta_lacks_is_a_conflict() -> None:
    world = World(TWO, spec=dataclasses.replace(SPEC, builtin_tools=("web_search",)))

    assert [f.kind for f in (await world.plan()).conflicts] == ["builtin_missing"]


async def test_a_missing_block_is_made_from_its_seed() -> None:
    world = World((), spec=dataclasses.replace(SPEC, blocks=(block("notes"),)))
    await world.sync()

    (made,) = world.letta.agents[world.agent_id].blocks

    assert (made.label, made.value, made.limit) == ("notes", "seed", 1_000)


async def test_a_detached_block_comes_back_with_what_it_holds() -> None:
    world = World((), spec=dataclasses.replace(SPEC, blocks=(block("notes"),)))
    await world.sync()
    (made,) = world.letta.agents[world.agent_id].blocks
    world.letta._change(world.agent_id, blocks=())

    assert (await world.plan()).steps == (AttachBlock("notes", made.id),)


async def test_a_blocks_value_is_never_compared() -> None:
    world = World((), spec=dataclasses.replace(SPEC, blocks=(block("notes"),)))
    await world.sync()
    (made,) = world.letta.agents[world.agent_id].blocks
    changed = dataclasses.replace(made, value="what the agent wrote")
    world.letta._change(world.agent_id, blocks=(changed,))

    assert (await world.plan()).in_sync


async def test_what_a_block_is_follows_the_spec() -> None:
    world = World((), spec=dataclasses.replace(SPEC, blocks=(block("notes"),)))
    await world.sync()
    world.spec = dataclasses.replace(
        SPEC, blocks=(block("notes", description="better", limit=2_000, read_only=True),)
    )

    (step,) = (await world.plan()).steps

    assert isinstance(step, UpdateBlockMeta)
    assert step.changes == {"description": "better", "limit": 2_000, "read_only": True}


async def test_a_limit_is_not_set_below_what_the_block_holds() -> None:
    world = World((), spec=dataclasses.replace(SPEC, blocks=(block("notes"),)))
    world.letta.add_block(world.agent_id, "notes", "x" * 1_001, limit=5_000)

    plan = await world.plan()

    assert [f.kind for f in plan.conflicts] == ["block_over_limit"]
    assert "limit" not in typing.cast("UpdateBlockMeta", plan.steps[0]).changes


async def test_only_declared_model_settings_are_compared() -> None:
    spec = dataclasses.replace(SPEC, model=dataclasses.replace(SPEC.model, context_window=64_000))
    world = World((), spec=spec)

    (step,) = (await world.plan()).steps

    assert step == PatchLlmConfig({"context_window": 64_000, "enable_reasoner": False})


async def test_a_patched_config_keeps_all_its_other_fields() -> None:
    world = World(())
    before = dict(world.letta.agents[world.agent_id].llm_config)
    await world.sync()

    after = world.letta.agents[world.agent_id].llm_config

    assert after == {**before, "enable_reasoner": False}


async def test_another_model_is_a_conflict_and_only_the_reasoner_is_set() -> None:
    model = dataclasses.replace(SPEC.model, handle="google_ai/gemini", context_window=1_000_000)
    world = World((), spec=dataclasses.replace(SPEC, model=model))

    plan = await world.plan()

    assert plan.steps == (PatchLlmConfig({"enable_reasoner": False}),)
    assert [f.kind for f in plan.conflicts] == ["model_differs"]


async def test_rules_and_prompt_are_set_where_they_are_declared() -> None:
    rules = (ToolRule("exit_loop", "alpha"),)
    world = World(TWO, spec=dataclasses.replace(SPEC, tool_rules=rules, system="You are ren."))

    steps = (await world.plan()).steps

    assert PatchToolRules(rules) in steps
    assert PatchSystem(0, 12) in steps


async def test_rules_that_are_not_declared_are_left_alone() -> None:
    world = await in_sync()
    world.letta._change(
        world.agent_id, tool_rules=({"type": "exit_loop", "tool_name": "alpha", "args": None},)
    )

    assert (await world.plan()).in_sync


async def test_a_rule_about_a_tool_that_is_not_attached_is_reported() -> None:
    world = await in_sync()
    world.letta._change(
        world.agent_id, tool_rules=({"type": "exit_loop", "tool_name": "send_message"},)
    )

    assert [(f.kind, f.target) for f in (await world.plan()).findings] == [
        ("orphaned_rule", "send_message")
    ]


async def test_the_shipped_spec_only_adds_tools_to_an_agent_of_someone_else() -> None:
    spec = dataclasses.replace(SPEC, path=SHIPPED_SPEC, system="Ours.", blocks=(block("notes"),))
    world = World(TWO, spec=spec, agent_id="")
    world.letta._change(world.agent_id, tags=())

    plan = await world.plan()

    assert {type(step) for step in plan.steps} == {RegisterServer, AttachTool}
    assert {(f.kind, f.target) for f in plan.findings} == {
        ("not_ours", "notes"),
        ("not_ours", "llm_config"),
        ("not_ours", "system"),
    }


async def test_a_spec_of_ones_own_rules_an_agent_of_someone_else() -> None:
    world = World(TWO, spec=dataclasses.replace(SPEC, system="Ours.", blocks=(block("notes"),)))
    world.letta._change(world.agent_id, tags=())

    kinds = {type(step) for step in (await world.plan()).steps}

    assert {PatchSystem, CreateBlock, PatchLlmConfig} <= kinds


async def test_the_token_is_in_no_text_of_a_state_or_a_plan() -> None:
    world = World(TWO)

    texts = (
        repr(world.desired) + repr(await world.observe()) + str(plans.plan_json(await world.plan()))
    )

    assert TOKEN not in texts
