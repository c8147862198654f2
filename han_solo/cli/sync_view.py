"""A plan and an outcome as people read them: what is done, what is not, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ..reconcile.ensure import Outcome
from ..reconcile.plan import (
    FindingKind,
    PatchLlmConfig,
    PatchName,
    PatchSystem,
    Plan,
    RegisterServer,
    Step,
    UpdateBlockMeta,
    UpdateServer,
    kind_of,
    target_of,
)
from ..reconcile.probe import Probe
from ..reconcile.spec import AgentSpec
from ..registry import ListedTool

MAX_NAMED: Final = 12
"""Names spelled out in one row; a first sync of seventy tools should fit on a screen."""

_WORDS: Final = {
    "register_server": "register the bridge",
    "update_server": "update the bridge's",
    "register_tool": "register",
    "update_tool": "update, same id",
    "attach_tool": "attach",
    "detach_tool": "detach, not delete",
    "create_block": "make block",
    "attach_block": "attach block",
    "update_block_meta": "change block",
    "patch_llm_config": "set model settings",
    "patch_tool_rules": "set tool rules",
    "patch_system": "set system prompt",
    "patch_name": "rename the agent",
}
_GROUPED: Final[frozenset[FindingKind]] = frozenset(
    {"undeclared_tool", "orphaned_rule", "not_ours"}
)


def build_plan_views(
    spec: AgentSpec, declared: Sequence[ListedTool], plan: Plan | None
) -> Iterator[RenderableType]:
    """Yield what to print about a plan; None is the plan of an agent that is not there yet."""
    if plan is None:
        yield Text(
            f"There is no agent {spec.name!r} yet. It would be made from {spec.path} on "
            f"{spec.model.handle}, with {len(declared)} tools and {len(spec.blocks)} blocks."
        )
        return
    if plan.steps:
        yield _build_steps(plan.steps)
    elif plan.in_sync:
        yield Text(f"Nothing to do: {spec.name} has all {len(declared)} tools as declared.")
    elif plan.refusal is None:
        count = len(plan.conflicts)
        left = "one conflict is" if count == 1 else f"{count} conflicts are"
        yield Text(f"A sync can do nothing here: {left} left for someone to decide.", "yellow")
    if plan.findings:
        yield _build_findings(plan)


def build_outcome_views(outcome: Outcome) -> Iterator[RenderableType]:
    """Yield what to print about a sync that was carried out."""
    if outcome.plan.steps:
        count = len(outcome.plan.steps)
        yield Text(
            f"Done: {count} {'step' if count == 1 else 'steps'} in {outcome.duration_ms / 1000:.1f}"
            " s, each read back.",
            style="green",
        )
    if not outcome.in_sync:
        yield Text(
            "Not in sync: someone has to decide about "
            + "; ".join(f"{f.target} ({f.kind})" for f in outcome.remaining.conflicts)
            + ".",
            style="yellow",
        )


def build_probe_view(probes: Sequence[Probe]) -> RenderableType:
    """Return what to print about the probes."""
    if not probes:
        return Text("No new tools to probe.")
    table = _table("Probes, through Letta", "tool", "outcome", "")
    for probe in probes:
        style = {"worked": "green", "failed": "bold red", "skipped": "dim"}[probe.outcome]
        table.add_row(probe.tool, Text(probe.outcome, style), Text(probe.words))
    return table


def _build_steps(steps: Sequence[Step]) -> Table:
    groups: dict[str, list[Step]] = {}
    for step in steps:
        groups.setdefault(kind_of(step), []).append(step)
    table = _table("Would do", "what", "count", "which")
    for kind, members in groups.items():
        names = [_describe(step) for step in members]
        table.add_row(Text(_WORDS[kind]), str(len(members)), Text(_join(names)))
    return table


def _describe(step: Step) -> str:
    match step:
        case RegisterServer():
            return f"{step.name} at {step.url}, with its {len(step.tools)} tools"
        case UpdateServer():
            return f"{' and '.join(step.changes)} in Letta ({step.name})"
        case UpdateBlockMeta() | PatchLlmConfig():
            fields = ", ".join(f"{name}={value}" for name, value in step.changes.items())
            return f"{target_of(step)}: {fields}" if isinstance(step, UpdateBlockMeta) else fields
        case PatchSystem():
            return f"{step.new_length:,} characters in place of {step.old_length:,}"
        case PatchName():
            return f"{step.new_name}, in place of {step.old_name}"
        case _:
            return target_of(step)


def _build_findings(plan: Plan) -> Table:
    table = _table("Would not do", "what", "why", "what helps")
    for finding in plan.findings:
        if finding.kind not in _GROUPED:
            words = (finding.target, finding.sentence, finding.hint)
            table.add_row(*(Text(word, "yellow" if finding.is_conflict else "") for word in words))
    for kind in sorted(_GROUPED):
        group = [finding for finding in plan.findings if finding.kind == kind]
        if len(group) == 1:
            table.add_row(*map(Text, (group[0].target, group[0].sentence, group[0].hint)))
        elif group:
            names = _join([finding.target for finding in group])
            table.add_row(Text(names), Text(_GROUP_WORDS[kind]), Text(group[0].hint))
    return table


_GROUP_WORDS: Final = {
    "undeclared_tool": "attached and not declared; they stay",
    "orphaned_rule": "named by tool rules and not attached",
    "not_ours": "differ from the shipped spec; han-solo did not make this agent",
}


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, expand=False)
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column == "count" else "left")
    return table


def _join(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MAX_NAMED])
    return f"{shown} and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else shown
