"""A plan: steps to take, findings that no step mends, or a refusal.

No step deletes anything, here or in Letta: there is no such type. A step names things by their
names, since ids appear only while the plan is carried out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .spec import ToolRule


@dataclass(frozen=True, slots=True)
class RegisterServer:
    """Register the bridge; Letta takes over every tool that it lists."""

    name: str
    url: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdateServer:
    """Give the registered bridge its new address or token. ``changes`` names what differs."""

    server_id: str
    name: str
    changes: tuple[Literal["url", "token"], ...]


@dataclass(frozen=True, slots=True)
class RegisterTool:
    """Register one tool that Letta does not have."""

    name: str


@dataclass(frozen=True, slots=True)
class UpdateTool:
    """Register one tool anew: Letta's copy of it is stale. Its id and attachments stay."""

    name: str
    tool_id: str


@dataclass(frozen=True, slots=True)
class AttachTool:
    """Attach a tool to the agent."""

    name: str


@dataclass(frozen=True, slots=True)
class DetachTool:
    """Detach a tool from the agent; the tool itself stays in Letta."""

    name: str
    tool_id: str
    why: Literal["undeclared", "builtin_memory"]


@dataclass(frozen=True, slots=True)
class CreateBlock:
    """Make a declared block from its seed and attach it."""

    label: str


@dataclass(frozen=True, slots=True)
class AttachBlock:
    """Attach a block that the agent once had, with what it holds."""

    label: str
    block_id: str


@dataclass(frozen=True, slots=True)
class UpdateBlockMeta:
    """Set a block's limit, description or read_only flag; never its value."""

    label: str
    block_id: str
    changes: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class PatchLlmConfig:
    """Set declared model settings, the rest of the config carried as it is."""

    changes: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class PatchToolRules:
    """Set the tool rules."""

    rules: tuple[ToolRule, ...]


@dataclass(frozen=True, slots=True)
class PatchSystem:
    """Set the system prompt. Lengths are in characters; the old text goes into the journal."""

    old_length: int
    new_length: int


@dataclass(frozen=True, slots=True)
class PatchName:
    """Give the agent the spec's name again; it is known by its id, which stays."""

    old_name: str
    new_name: str


Step = (
    RegisterServer
    | UpdateServer
    | RegisterTool
    | UpdateTool
    | AttachTool
    | DetachTool
    | CreateBlock
    | AttachBlock
    | UpdateBlockMeta
    | PatchLlmConfig
    | PatchToolRules
    | PatchSystem
    | PatchName
)

FindingKind = Literal[
    "foreign_name",
    "duplicate_name",
    "undeclared_tool",
    "builtin_memory_tools",
    "builtin_missing",
    "orphaned_rule",
    "model_differs",
    "block_over_limit",
    "name_taken",
    "not_ours",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the plan does not change. ``is_conflict``: someone has to decide."""

    kind: FindingKind
    target: str
    sentence: str
    hint: str
    is_conflict: bool


RefusalReason = Literal["bridge_cold", "bridge_differs", "name_collision", "server_name_taken"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing at all is done."""

    reason: RefusalReason
    sentence: str
    hint: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sync would do, and what it would not do. A refused plan has no steps."""

    steps: tuple[Step, ...] = ()
    findings: tuple[Finding, ...] = ()
    refusal: Refusal | None = None

    @property
    def is_empty(self) -> bool:
        """Say whether there is nothing to do."""
        return not self.steps and self.refusal is None

    @property
    def conflicts(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.is_conflict)

    @property
    def in_sync(self) -> bool:
        """Say whether the world is as declared."""
        return self.is_empty and not self.conflicts


def kind_of(step: Step) -> str:
    """Return a step's name in the journal and in JSON, such as ``attach_tool``."""
    name = type(step).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def target_of(step: Step) -> str:
    """Return what a step is about: a tool's, server's or block's name, or a field's."""
    match step:
        case CreateBlock() | AttachBlock() | UpdateBlockMeta():
            return step.label
        case PatchLlmConfig():
            return "llm_config"
        case PatchToolRules():
            return "tool_rules"
        case PatchSystem():
            return "system"
        case PatchName():
            return "name"
        case _:
            return step.name


def step_json(step: Step) -> dict[str, object]:
    """Return a step as JSON values."""
    return {"kind": kind_of(step), "target": target_of(step), **_fields(step)}


def plan_json(plan: Plan) -> dict[str, object]:
    """Return a plan as JSON values."""
    return {
        "in_sync": plan.in_sync,
        "steps": [step_json(step) for step in plan.steps],
        "findings": [dataclasses.asdict(finding) for finding in plan.findings],
        "refusal": None if plan.refusal is None else dataclasses.asdict(plan.refusal),
    }


def _fields(step: Step) -> dict[str, object]:
    if isinstance(step, PatchToolRules):
        return {"rules": [rule.to_letta() for rule in step.rules]}
    fields = dataclasses.asdict(step)
    fields.pop("name", None)
    fields.pop("label", None)
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()
    }
