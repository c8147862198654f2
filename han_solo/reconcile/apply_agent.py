"""Steps about what the agent is: its name, blocks, model settings, tool rules, system prompt.

What a step replaces goes into its record in the journal, so that nothing that someone wrote into
Letta by hand is lost when the spec says otherwise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import cast

from ..errors import HanSoloError, LettaNotFound, PlanRefused
from .diff_agent import find_block_changes
from .gateway import Gateway
from .known import Remember
from .model import Observed, ObservedAgent
from .observe import build_agent
from .plan import (
    AttachBlock,
    CreateBlock,
    PatchLlmConfig,
    PatchName,
    PatchSystem,
    PatchToolRules,
    Step,
    UpdateBlockMeta,
)
from .spec import AgentSpec
from .verify import not_verified


def prepare(
    step: Step, spec: AgentSpec, observed: Observed, gateway: Gateway, remember: Remember
) -> Awaitable[dict[str, object]] | None:
    """Return the call that takes the step, or None when the step is of another stage."""
    agent = observed.agent
    call: Awaitable[dict[str, object]] | None = None
    match step:
        case CreateBlock():
            call = _create_block(step, spec, agent, gateway, remember)
        case AttachBlock():
            call = _attach_block(step, spec, agent, gateway, remember)
        case UpdateBlockMeta():
            call = _update_block(step, agent, gateway)
        case PatchLlmConfig():
            call = _patch_llm_config(step, agent, gateway)
        case PatchToolRules():
            call = _patch_rules(step, agent, gateway)
        case PatchSystem():
            call = _patch_system(spec, agent, gateway)
        case PatchName():
            call = _patch_name(step, agent, gateway)
        case _:
            pass
    return call


def check(step: Step, spec: AgentSpec, agent: ObservedAgent) -> HanSoloError | None:
    """Return the fault when the agent, read back, is not as the step makes it."""
    expected: object = None
    found: object = None
    match step:
        case CreateBlock(label=label) | AttachBlock(label=label):
            expected, found = True, agent.block(label) is not None
        case UpdateBlockMeta(label=label, changes=changes):
            block = agent.block(label)
            expected, found = changes, {name: getattr(block, name, None) for name in changes}
        case PatchLlmConfig(changes=changes):
            expected, found = changes, {name: agent.llm_config.get(name) for name in changes}
        case PatchToolRules(rules=rules):
            expected, found = sorted(set(rules)), sorted(set(agent.tool_rules))
        case PatchSystem():
            expected, found = spec.system or "", agent.system
        case PatchName(new_name=name):
            expected, found = name, agent.name
        case _:
            pass
    return None if found == expected else not_verified(step, str(expected), str(found))


async def _create_block(
    step: CreateBlock, spec: AgentSpec, agent: ObservedAgent, gateway: Gateway, remember: Remember
) -> dict[str, object]:
    block = spec.block(step.label)
    assert block
    made = await gateway.create_block(
        block.label,
        block.seed,
        limit=block.limit,
        description=block.description or "",
        read_only=block.read_only,
    )
    # Before it is attached: should that fail, the next sync attaches this one and makes no other.
    await remember.note_block(agent.id, block.label, made.id)
    await gateway.attach_block(agent.id, made.id)
    return {"block_id": made.id}


async def _attach_block(
    step: AttachBlock, spec: AgentSpec, agent: ObservedAgent, gateway: Gateway, remember: Remember
) -> dict[str, object]:
    """Attach the block; only then is it seen whether it is as declared."""
    try:
        await gateway.attach_block(agent.id, step.block_id)
    except LettaNotFound as error:
        await gateway.fetch_agent(agent.id)  # when the agent is what is gone, this says so
        await remember.forget_block(agent.id, step.label, step.block_id)
        raise PlanRefused(
            f"The block {step.label!r} was {step.block_id}, and Letta no longer has it: what it "
            "held is gone there.",
            reason="block_gone",
            hint="Run again to make it anew from its seed; the journal keeps the old id.",
        ) from error
    found = build_agent(await gateway.fetch_agent(agent.id)).block(step.label)
    wanted = spec.block(step.label)
    changes = find_block_changes(wanted, found) if wanted and found else {}
    if changes:
        await _patch_block(step.block_id, changes, gateway)
    return {"block_id": step.block_id, "changes": changes}


async def _update_block(
    step: UpdateBlockMeta, agent: ObservedAgent, gateway: Gateway
) -> dict[str, object]:
    block = agent.block(step.label)
    previous = {name: getattr(block, name, None) for name in step.changes}
    await _patch_block(step.block_id, step.changes, gateway)
    return {"block_id": step.block_id, "previous": previous, "changes": dict(step.changes)}


async def _patch_block(block_id: str, changes: Mapping[str, object], gateway: Gateway) -> None:
    await gateway.patch_block(
        block_id,
        limit=cast("int | None", changes.get("limit")),
        description=cast("str | None", changes.get("description")),
        read_only=cast("bool | None", changes.get("read_only")),
    )


async def _patch_llm_config(
    step: PatchLlmConfig, agent: ObservedAgent, gateway: Gateway
) -> dict[str, object]:
    previous = {name: agent.llm_config.get(name) for name in step.changes}
    await gateway.patch_llm_config(agent.id, {**agent.llm_config, **step.changes})
    return {"previous": previous, "changes": dict(step.changes)}


async def _patch_rules(
    step: PatchToolRules, agent: ObservedAgent, gateway: Gateway
) -> dict[str, object]:
    rules = [rule.to_letta() for rule in step.rules]
    await gateway.patch_tool_rules(agent.id, rules)
    return {"previous": [rule.to_letta() for rule in agent.tool_rules], "rules": rules}


async def _patch_system(
    spec: AgentSpec, agent: ObservedAgent, gateway: Gateway
) -> dict[str, object]:
    await gateway.patch_system(agent.id, spec.system or "")
    return {"previous": agent.system}


async def _patch_name(step: PatchName, agent: ObservedAgent, gateway: Gateway) -> dict[str, object]:
    await gateway.patch_name(agent.id, step.new_name)
    return {"previous": step.old_name}
