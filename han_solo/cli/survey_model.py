"""What ``status`` and ``doctor`` find: the parts of an installation, and how each one is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import HanSoloError
from ..letta.views import AgentView
from ..reconcile.plan import Plan
from ..reconcile.spec import AgentSpec
from ..registry import Registry

Level = Literal["ok", "warning", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class Part:
    """How one part is. ``unknown``: it could not be looked at, since another one is away."""

    name: str
    level: Level
    address: str
    detail: str
    fix: str | None = None

    def to_json(self) -> dict[str, str | None]:
        return {
            "name": self.name,
            "level": self.level,
            "address": self.address,
            "detail": self.detail,
            "fix": self.fix,
        }


@dataclass(slots=True)
class Survey:
    """What was found, in the order the parts depend on each other."""

    parts: list[Part] = field(default_factory=list)
    agent: AgentView | None = None
    plan: Plan | None = None
    spec: AgentSpec | None = None
    registry: Registry | None = None

    @property
    def is_well(self) -> bool:
        return all(part.level in {"ok", "warning"} for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        return {"well": self.is_well, "parts": [part.to_json() for part in self.parts]}

    def add(
        self, name: str, level: Level, address: str, detail: str, fix: str | None = None
    ) -> None:
        self.parts.append(Part(name, level, address, detail, fix))

    def add_fault(self, name: str, address: str, error: HanSoloError) -> None:
        self.add(name, "failed", address, error.message, error.hint)
