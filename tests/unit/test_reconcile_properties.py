"""What holds for every desired and every observed state, over generated worlds."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Coroutine
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from han_solo.declare import LETTA_MEMORY_BUILTINS
from han_solo.reconcile.model import Consent
from han_solo.reconcile.plan import kind_of
from han_solo.reconcile.spec import SHIPPED_SPEC, BlockSpec, ModelSpec, ToolRule
from tests.unit.reconcile_world import SPEC, TOKEN, URL, World, listed

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
BUILTINS = ("memory_insert", "core_memory_append", "web_search", "conversation_search")
LABELS = ("core", "notes", "voice")
READS = {"fetch_agent", "fetch_tools", "fetch_mcp_servers"}


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


_tool = st.builds(
    listed,
    st.sampled_from(NAMES),
    st.sampled_from(["One.", "Two."]),
)
_declared = st.lists(_tool, unique_by=lambda tool: tool.name, max_size=5).map(tuple)
_block = st.builds(
    BlockSpec,
    label=st.sampled_from(LABELS),
    description=st.sampled_from([None, "what for"]),
    limit=st.sampled_from([10, 1_000]),
    read_only=st.booleans(),
    seed=st.just("seed"),
    writers=st.just(("agent",)),
)
_model = st.builds(
    ModelSpec,
    handle=st.sampled_from(["openai-proxy/rehearsal", "google_ai/gemini"]),
    context_window=st.sampled_from([None, 64_000]),
    enable_reasoner=st.just(False),
    max_tokens=st.sampled_from([None, 4_096]),
    max_reasoning_tokens=st.none(),
    temperature=st.sampled_from([None, 0.5]),
    parallel_tool_calls=st.none(),
)
_rule = st.builds(
    ToolRule, type=st.sampled_from(["exit_loop", "run_first"]), tool_name=st.sampled_from(NAMES)
)
_spec = st.builds(
    lambda **fields: dataclasses.replace(SPEC, **fields),
    model=_model,
    builtin_tools=st.lists(st.sampled_from(BUILTINS), unique=True).map(tuple),
    tool_rules=st.one_of(st.none(), st.lists(_rule, max_size=2).map(tuple)),
    blocks=st.lists(_block, unique_by=lambda block: block.label).map(tuple),
    system=st.sampled_from([None, "You are ren."]),
    path=st.sampled_from([SPEC.path, SHIPPED_SPEC]),
)


SERVERS = {
    "none": None,
    "ours": (URL, TOKEN),
    "moved": ("http://old.test/mcp", TOKEN),
    "rotated": (URL, "old"),
    "stranger": ("http://old.test/mcp", "old"),
    "known": ("http://old.test/mcp", "old"),
}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a declared set and a spec, and a Letta in whatever state hands and crashes left it."""
    world = World(draw(_declared), spec=draw(_spec))
    if draw(st.booleans()):
        world.letta._change(world.agent_id, tags=())
    _draw_tools(draw, world)
    _draw_server(draw, world)
    _draw_blocks(draw, world)
    _draw_bridge(draw, world)
    return world


def _draw_tools(draw: st.DrawFn, world: World) -> None:
    letta = world.letta
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        letta.add_tool(name, server=draw(st.sampled_from([None, "han-solo", "other"])))
    for name in draw(st.lists(st.sampled_from(BUILTINS), unique=True)):
        letta.add_tool(name, "letta_core")
    if letta.tools:
        for name in draw(st.lists(st.sampled_from(sorted(letta.tools)), unique=True)):
            letta.attach_by_hand(world.agent_id, name)


def _draw_server(draw: st.DrawFn, world: World) -> None:
    kind = draw(st.sampled_from(sorted(SERVERS)))
    if row := SERVERS[kind]:
        server_id = world.letta.add_server("han-solo", *row)
        if kind == "known":
            run(world.notes.note_server(server_id, "han-solo"))


def _draw_blocks(draw: st.DrawFn, world: World) -> None:
    letta, agent_id = world.letta, world.agent_id
    for label in draw(st.lists(st.sampled_from(LABELS), unique=True)):
        block = letta.add_block(agent_id, label, "x" * draw(st.sampled_from([0, 50])))
        if draw(st.booleans()):  # detached by hand, and remembered
            kept = tuple(b for b in letta.agents[agent_id].blocks if b.id != block)
            letta._change(agent_id, blocks=kept)
            run(world.notes.note_block(agent_id, label, block))


def _draw_bridge(draw: st.DrawFn, world: World) -> None:
    bridge = world.letta.bridges[URL]
    match draw(st.sampled_from([*["fine"] * 8, "down", "half", "other code"])):
        case "down":
            bridge.is_up = False
        case "half":
            bridge.tools = bridge.tools[: len(bridge.tools) // 2]
        case "other code":
            bridge.tools = (*bridge.tools, listed("zeta"))


_consent = st.sets(st.sampled_from(["prune", "detach_builtin_memory"])).map(tuple)
_always = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def state(world: World) -> object:
    letta = world.letta
    return (
        dict(letta.tools),
        dict(letta.servers),
        dict(letta.blocks),
        {key: dataclasses.astuple(agent) for key, agent in letta.agents.items()},
    )


@_always
@given(worlds(), _consent)
def test_after_a_sync_nothing_is_left_to_do(world: World, consent: tuple[Consent, ...]) -> None:
    plan = run(world.sync(*consent))

    again = run(world.plan(*consent))

    assert again.steps == ()
    assert (again.refusal is None) == (plan.refusal is None)


@_always
@given(worlds(), _consent)
def test_a_second_sync_changes_nothing(world: World, consent: tuple[Consent, ...]) -> None:
    run(world.sync(*consent))
    before = state(world)
    world.letta.calls.clear()

    run(world.sync(*consent))

    assert state(world) == before
    assert set(world.letta.calls) <= READS


@_always
@given(worlds(), _consent)
def test_no_plan_deletes(world: World, consent: tuple[Consent, ...]) -> None:
    tools = {tool.id for tool in world.letta.tools.values()}
    blocks = {key: block.value for key, block in world.letta.blocks.items()}
    servers = {row.id for row in world.letta.servers.values()}

    plan = run(world.sync(*consent))

    assert not [step for step in plan.steps if "delete" in kind_of(step)]
    assert tools <= {tool.id for tool in world.letta.tools.values()}
    assert servers <= {row.id for row in world.letta.servers.values()}
    assert {key: world.letta.blocks[key].value for key in blocks} == blocks


@_always
@given(worlds(), _consent)
def test_what_belongs_to_others_is_as_it_was(world: World, consent: tuple[Consent, ...]) -> None:
    others = {
        name: tool for name, tool in world.letta.tools.items() if tool.mcp_server != "han-solo"
    }

    plan = run(world.sync(*consent))

    assert {name: world.letta.tools[name] for name in others} == others
    taken = sorted(set(others) & world.desired.names())
    if plan.refusal is None:
        assert sorted(f.target for f in plan.findings if f.kind == "foreign_name") == taken
    elif plan.refusal.reason == "name_collision":
        assert all(name in plan.refusal.sentence for name in taken)


@_always
@given(worlds(), _consent)
def test_a_refused_plan_touches_nothing(world: World, consent: tuple[Consent, ...]) -> None:
    before = state(world)

    plan = run(world.sync(*consent))

    if plan.refusal:
        assert state(world) == before
        assert set(world.letta.calls) <= READS


@_always
@given(worlds())
def test_without_consent_nothing_is_detached(world: World) -> None:
    before = world.attached()

    run(world.sync())

    assert before <= world.attached()


@_always
@given(worlds())
def test_consent_for_memory_tools_detaches_nothing_else(world: World) -> None:
    before = world.attached()

    run(world.sync("detach_builtin_memory"))

    assert before - world.attached() <= LETTA_MEMORY_BUILTINS


@_always
@given(worlds())
def test_every_tool_that_can_be_attached_is(world: World) -> None:
    plan = run(world.sync("prune"))

    if plan.refusal is None:
        foreign = {f.target for f in plan.findings if f.kind == "foreign_name"}
        assert world.desired.names() - foreign <= world.attached()
        extra = world.attached() - world.desired.names() - set(world.spec.builtin_tools)
        assert extra == set()
