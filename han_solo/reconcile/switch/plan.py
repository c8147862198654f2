"""What a switch would do: two plans, shown before they run. Values only; nothing here acts.

The first sends ``llm_config`` alone, complete. The second sends ``tool_ids`` alone, and only if
reading back the first shows that tools went missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from .config import FieldChange, build_config


@dataclass(frozen=True, slots=True)
class Note:
    """Something to know before it runs. ``source`` is the page it was read on."""

    kind: str
    sentence: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """A switch of one agent. ``tools`` are names by id, as they are attached now."""

    agent_id: str
    agent_name: str
    is_back: bool
    spec_handle: str
    old_config: Mapping[str, object]
    fields: tuple[FieldChange, ...]
    tools: Mapping[str, str]
    notes: tuple[Note, ...] = ()

    @property
    def from_handle(self) -> str:
        return str(self.old_config.get("handle"))

    @property
    def to_handle(self) -> str:
        return str(self.new_config.get("handle"))

    @property
    def new_config(self) -> dict[str, object]:
        return build_config(self.fields)

    @property
    def changes(self) -> tuple[FieldChange, ...]:
        return tuple(field for field in self.fields if field.is_change)

    @property
    def is_empty(self) -> bool:
        """Say whether the agent has that configuration already."""
        return not self.changes

    def is_same_as(self, other: SwitchPlan) -> bool:
        """Say whether both do the same to an agent in the same state."""
        return (self.agent_id, self.old_config, self.fields, self.tools) == (
            other.agent_id,
            other.old_config,
            other.fields,
            other.tools,
        )

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "agent_id": self.agent_id,
            "is_back": self.is_back,
            "from": self.from_handle,
            "to": self.to_handle,
            "changes_something": not self.is_empty,
            "llm_config": [
                {**dataclasses.asdict(field), "is_change": field.is_change} for field in self.fields
            ],
            "tool_ids": list(self.tools),
            "tools": list(self.tools.values()),
            "notes": [dataclasses.asdict(note) for note in self.notes],
        }
