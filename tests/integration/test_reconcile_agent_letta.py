"""What the spec says about the agent itself, brought in line on the real Letta."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

from han_solo.errors import UsageError
from han_solo.reconcile.plan import (
    AttachBlock,
    PatchLlmConfig,
    PatchName,
    PatchSystem,
    PatchToolRules,
)
from han_solo.reconcile.spec import BlockSpec, ToolRule, load_spec
from tests.integration.reconcile_fixtures import Lab, build_tools, open_lab
from tests.unit.reconcile_world import SPEC

REHEARSAL = "openai-proxy/rehearsal"
NOTES = BlockSpec("notes", "what it is for", 1_000, False, "Nothing yet.", ("agent",))


@pytest.fixture
async def lab(letta_server: Any, letta_actor: Any, database_url: str) -> AsyncIterator[Lab]:
    async with open_lab(letta_server, letta_actor, database_url, tools=build_tools(3)) as opened:
        yield opened


def use(lab: Lab, **fields: Any) -> None:
    lab.use(spec=dataclasses.replace(SPEC, **fields))


async def test_the_shipped_spec_is_in_sync_after_one_sync_and_stays_so(lab: Lab) -> None:
    spec = load_spec(model=REHEARSAL)
    lab.use(spec=spec)

    first = await lab.sync()
    second = await lab.sync()

    assert first.in_sync
    assert second.plan.steps == ()
    agent = await lab.agent()
    assert agent.system == spec.system
    assert {block.label: block.value for block in agent.blocks} == {
        block.label: block.seed for block in spec.blocks
    }
    assert agent.llm_config["enable_reasoner"] is False


async def test_every_type_of_rule_is_set_and_read_back(lab: Lab) -> None:
    rules = (
        ToolRule("run_first", "tool_00"),
        ToolRule("continue_loop", "tool_00"),
        ToolRule("exit_loop", "tool_01"),
        ToolRule("required_before_exit", "tool_02"),
        ToolRule("requires_approval", "tool_02"),
        ToolRule("constrain_child_tools", "tool_00", ("tool_01", "tool_02")),
        ToolRule("parent_last_tool", "tool_00", ("tool_01",)),
        ToolRule("max_count_per_step", "tool_01", (), 3),
    )
    use(lab, tool_rules=rules)

    outcome = await lab.sync()

    assert PatchToolRules(rules) in outcome.plan.steps
    assert outcome.in_sync
    assert (await lab.sync()).plan.steps == ()


async def test_a_block_that_was_detached_comes_back_with_what_it_holds(lab: Lab) -> None:
    use(lab, blocks=(NOTES,))
    await lab.sync()
    (block,) = (await lab.agent()).blocks
    await lab.gateway.write_block(block.id, "What the agent wrote.")
    path = f"/v1/agents/{await lab.agent_id()}/core-memory/blocks/detach/{block.id}"
    (await lab.http.patch(path)).raise_for_status()

    outcome = await lab.sync()

    assert outcome.plan.steps == (AttachBlock("notes", block.id),)
    (found,) = (await lab.agent()).blocks
    assert (found.id, found.value) == (block.id, "What the agent wrote.")


async def test_what_a_block_is_changes_and_its_value_stays(lab: Lab) -> None:
    use(lab, blocks=(NOTES,))
    await lab.sync()
    (block,) = (await lab.agent()).blocks
    await lab.gateway.write_block(block.id, "What the agent wrote.")
    use(lab, blocks=(dataclasses.replace(NOTES, limit=2_000, description="b", read_only=True),))

    assert (await lab.sync()).in_sync

    (found,) = (await lab.agent()).blocks
    assert (found.id, found.value) == (block.id, "What the agent wrote.")
    assert (found.limit, found.description, found.read_only) == (2_000, "b", True)


async def test_model_settings_are_put_right_and_the_tools_stay(lab: Lab) -> None:
    model = dataclasses.replace(SPEC.model, context_window=100_000, max_tokens=8_000)
    use(lab, model=model)
    await lab.sync()
    agent = await lab.agent()
    await lab.gateway.patch_llm_config(
        agent.id, {**agent.llm_config, "context_window": 32_000, "enable_reasoner": True}
    )

    outcome = await lab.sync()

    assert outcome.plan.steps == (
        PatchLlmConfig({"context_window": 100_000, "enable_reasoner": False}),
    )
    after = await lab.agent()
    assert after.llm_config == agent.llm_config
    assert {tool.id for tool in after.tools} == {tool.id for tool in agent.tools}


async def test_a_prompt_changed_by_hand_is_put_right_and_kept_in_the_journal(lab: Lab) -> None:
    use(lab, system="You are ren.\n\nBe brief. ")
    await lab.sync()
    await lab.gateway.patch_system(await lab.agent_id(), "Someone's own words.")

    outcome = await lab.sync()

    assert outcome.plan.steps == (PatchSystem(20, 24),)
    assert (await lab.agent()).system == "You are ren.\n\nBe brief. "
    assert outcome.run_id
    (step,) = await lab.services.journal.load_steps(outcome.run_id)
    assert step.detail == {"previous": "Someone's own words."}


async def test_a_renamed_agent_is_given_its_name_back_under_its_id(lab: Lab) -> None:
    await lab.sync()
    agent_id = await lab.agent_id()
    await lab.gateway.patch_name(agent_id, "someone else")

    outcome = await lab.sync()

    assert outcome.plan.steps == (PatchName("someone else", "ren"),)
    assert outcome.in_sync
    assert outcome.agent_id == agent_id
    assert [agent.id for agent in await lab.gateway.find_agents("ren")] == [agent_id]


async def test_a_kept_builtin_is_attached(lab: Lab) -> None:
    use(lab, builtin_tools=("conversation_search",))

    assert (await lab.sync()).in_sync
    assert "conversation_search" in await lab.attached()
    assert (await lab.sync(prune=True)).plan.steps == ()


async def test_a_model_that_letta_lacks_is_named_and_no_agent_made(lab: Lab) -> None:
    use(lab, model=dataclasses.replace(SPEC.model, handle="google_ai/gemini-2.5-flash"))

    with pytest.raises(UsageError, match=f"no model google_ai.*{REHEARSAL}"):
        await lab.sync()

    assert await lab.gateway.find_agents("ren") == ()
