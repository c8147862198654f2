"""The part of ``diff`` that is about the agent: attachments, blocks, model, rules, prompt.

An agent that we did not make (it lacks our tag) is changed by a spec that its operator wrote; the
shipped spec was written for nobody in particular, so there it only adds tools and reports the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..declare import LETTA_MEMORY_BUILTINS
from .model import Consent, Desired, Observed, ObservedAgent, ObservedBlock, ObservedTool
from .pinned import find_pin, pin_model
from .plan import (
    AttachBlock,
    AttachTool,
    CreateBlock,
    DetachTool,
    Finding,
    PatchLlmConfig,
    PatchName,
    PatchSystem,
    PatchToolRules,
    Step,
    UpdateBlockMeta,
    target_of,
)
from .spec import AgentSpec, BlockSpec


@dataclass(slots=True)
class AgentDiff:
    """Steps and findings about the agent."""

    steps: list[Step] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def diff_agent(
    desired: Desired,
    observed: Observed,
    usable: Mapping[str, ObservedTool | None],
    consent: frozenset[Consent],
) -> AgentDiff:
    """Compare the agent.

    Args:
        desired: what is to be.
        observed: what is.
        usable: tools of ours that exist, or (None) will exist once the earlier steps are done.
        consent: removals that were asked for.
    """
    result = AgentDiff()
    agent = observed.agent
    attached = {tool.id for tool in agent.tools}
    for name, row in usable.items():
        if row is None or row.id not in attached:
            result.steps.append(AttachTool(name))
    _attach_builtins(desired.spec, observed, attached, result)
    detached = _find_undeclared(desired, agent, consent, result)
    described = AgentDiff()
    for block in desired.spec.blocks:
        _diff_block(block, agent.block(block.label), observed, described)
    _diff_name(desired.spec, observed, described)
    _diff_model(desired.spec, observed, described)
    _diff_rules(desired.spec, agent, described)
    _diff_system(desired.spec, agent, described)
    if desired.spec.is_shipped and desired.spec.tag not in agent.tags:
        result.findings += [_not_ours(step, agent) for step in described.steps]
    else:
        result.steps += described.steps
        result.findings += described.findings
    present = {tool.name for tool in agent.tools} | {
        step.name for step in result.steps if isinstance(step, AttachTool)
    }
    _find_orphans(desired.spec, agent, present - {step.name for step in detached}, result)
    result.steps += detached  # last, so that a plan that fails has taken nothing away
    return result


def _attach_builtins(
    spec: AgentSpec, observed: Observed, attached: set[str], result: AgentDiff
) -> None:
    for name in spec.builtin_tools:
        row = next((row for row in observed.named(name) if row.is_builtin), None)
        if row is None:
            result.findings.append(
                Finding(
                    "builtin_missing",
                    name,
                    f"The spec keeps Letta's tool {name}, and Letta does not have it.",
                    "Restart Letta, which makes its own tools anew, or take it out of the spec.",
                    is_conflict=True,
                )
            )
        elif row.id not in attached:
            result.steps.append(AttachTool(name))


def _find_undeclared(
    desired: Desired, agent: ObservedAgent, consent: frozenset[Consent], result: AgentDiff
) -> list[DetachTool]:
    kept = frozenset(desired.spec.builtin_tools)
    steps: list[DetachTool] = []
    undoing: list[str] = []
    for tool in agent.tools:
        undoes_writes = tool.is_builtin and tool.name in LETTA_MEMORY_BUILTINS
        if tool.is_builtin and tool.name in kept:
            undoing += [tool.name] if undoes_writes else []
        elif tool.name in desired.names():
            continue
        elif undoes_writes and consent:
            steps.append(DetachTool(tool.name, tool.id, "builtin_memory"))
        elif undoes_writes:
            undoing.append(tool.name)
        elif "prune" in consent:
            steps.append(DetachTool(tool.name, tool.id, "undeclared"))
        else:
            result.findings.append(_undeclared(tool, desired))
    if undoing:
        result.findings.append(_undoing(undoing, kept))
    return steps


def _undeclared(tool: ObservedTool, desired: Desired) -> Finding:
    ours = tool.server == desired.server.name
    words = "is no longer declared" if ours else f"is not declared ({tool.describe_owner()})"
    return Finding(
        "undeclared_tool",
        tool.name,
        f"{tool.name} is attached and {words}; it stays.",
        "sync-tools --prune detaches it; the tool itself is never deleted.",
        is_conflict=False,
    )


def _undoing(names: list[str], kept: frozenset[str]) -> Finding:
    listed = ", ".join(sorted(names))
    in_spec = sorted(kept.intersection(names))
    return Finding(
        "builtin_memory_tools",
        listed,
        f"Letta's own memory tools are attached ({listed}): at the end of a turn they put back "
        "every block as it was at its start, so block writes are refused.",
        f"Take {', '.join(in_spec)} out of the spec's [tools] builtin."
        if in_spec
        else "Detach them: sync-tools --detach-builtin-memory.",
        is_conflict=True,
    )


def _diff_block(
    block: BlockSpec, found: ObservedBlock | None, observed: Observed, result: AgentDiff
) -> None:
    if found is None:
        known = observed.known.blocks.get(block.label)
        result.steps.append(AttachBlock(block.label, known) if known else CreateBlock(block.label))
        return
    if block.limit != found.limit and found.length > block.limit:
        result.findings.append(_over_limit(block, found))
    if changes := find_block_changes(block, found):
        result.steps.append(UpdateBlockMeta(block.label, found.id, changes))


def find_block_changes(block: BlockSpec, found: ObservedBlock) -> dict[str, object]:
    """Return what of a block is declared otherwise; a limit that its value breaks is not set."""
    changes: dict[str, object] = {}
    if block.description is not None and block.description != found.description:
        changes["description"] = block.description
    if block.read_only != found.read_only:
        changes["read_only"] = block.read_only
    if block.limit != found.limit and found.length <= block.limit:
        changes["limit"] = block.limit
    return changes


def _over_limit(block: BlockSpec, found: ObservedBlock) -> Finding:
    return Finding(
        "block_over_limit",
        block.label,
        f"{block.label} holds {found.length:,} characters and the spec allows {block.limit:,}; "
        f"its limit stays {found.limit:,}.",
        "Shorten the block or raise the limit in the spec.",
        is_conflict=True,
    )


def _diff_name(spec: AgentSpec, observed: Observed, result: AgentDiff) -> None:
    """Give a renamed agent its name back, unless two would bear it then."""
    agent = observed.agent
    if agent.name == spec.name:
        return
    if not observed.namesakes:
        result.steps.append(PatchName(agent.name, spec.name))
        return
    others = ", ".join(observed.namesakes)
    result.findings.append(
        Finding(
            "name_taken",
            "name",
            f"The agent {agent.id} is named {agent.name!r} in Letta, the spec says {spec.name!r}, "
            f"and that name is borne by another ({others}).",
            "Rename the other one in Letta, and run again.",
            is_conflict=True,
        )
    )


def _diff_model(spec: AgentSpec, observed: Observed, result: AgentDiff) -> None:
    agent = observed.agent
    handle = agent.llm_config.get("handle")
    pin = find_pin(spec.model, observed.known.switched, handle)
    wanted = pin_model(spec.model, observed.known.switched, handle).settings()
    if pin:
        result.findings.append(
            Finding(
                "model_differs",
                "llm_config",
                f"The agent runs {handle} since a switch on {pin.at:%Y-%m-%d}; the spec still says "
                f"{spec.model.handle}.",
                name_handle_hint(spec, str(handle)),
                is_conflict=False,
            )
        )
    elif handle != spec.model.handle:
        result.findings.append(
            Finding(
                "model_differs",
                "llm_config",
                f"The agent runs {handle}, the spec says {spec.model.handle}; its settings are "
                "left alone.",
                f"A sync never switches models: switch-model {spec.model.handle}, or set "
                "HAN_SOLO_MODEL or the spec to what it runs.",
                is_conflict=True,
            )
        )
        # The other settings were chosen for another model; this one silences any.
        wanted = {} if spec.model.enable_reasoner else {"enable_reasoner": False}
    changes = {name: value for name, value in wanted.items() if agent.llm_config.get(name) != value}
    if changes:
        result.steps.append(PatchLlmConfig(changes))


def name_handle_hint(spec: AgentSpec, handle: str) -> str:
    """Return how the operator tells the spec what the agent runs."""
    if spec.is_shipped:
        return f"Set HAN_SOLO_MODEL={handle}."
    return f'Put handle = "{handle}" into [model] of {spec.path} (or set HAN_SOLO_MODEL).'


def _diff_rules(spec: AgentSpec, agent: ObservedAgent, result: AgentDiff) -> None:
    if spec.tool_rules is not None and set(spec.tool_rules) != set(agent.tool_rules):
        result.steps.append(PatchToolRules(spec.tool_rules))


def _diff_system(spec: AgentSpec, agent: ObservedAgent, result: AgentDiff) -> None:
    if spec.system is not None and spec.system != agent.system:
        result.steps.append(PatchSystem(len(agent.system), len(spec.system)))


def _find_orphans(
    spec: AgentSpec, agent: ObservedAgent, present: set[str], result: AgentDiff
) -> None:
    planned = any(isinstance(step, PatchToolRules) for step in result.steps)
    rules = spec.tool_rules if planned and spec.tool_rules is not None else agent.tool_rules
    for name in sorted({part for rule in rules for part in (rule.tool_name, *rule.children)}):
        if name not in present:
            result.findings.append(
                Finding(
                    "orphaned_rule",
                    name,
                    f"A tool rule names {name}, which is not attached.",
                    "Mend [[tool_rules]] in the spec, or the agent's rules in Letta.",
                    is_conflict=False,
                )
            )


def _not_ours(step: Step, agent: ObservedAgent) -> Finding:
    target = target_of(step)
    return Finding(
        "not_ours",
        target,
        f"{target} differs from the shipped spec and is left alone: han-solo did not make "
        f"{agent.name!r}.",
        "Write a spec of your own for it (HAN_SOLO_AGENT_SPEC) to have this kept in sync.",
        is_conflict=False,
    )
