"""What the bridge says of itself, as values: how it is, and how its tools stand in Letta."""

from __future__ import annotations

import functools
import importlib.metadata
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Sync:
    """The last run of ``ensure_ren_tools``: whether it left the agent in sync, and if not, why.

    ``in_sync`` is None until a run has ended. ``is_final``: the run came to its end, so what is
    left waits for a person and not for another try.
    """

    in_sync: bool | None = None
    at: datetime | None = None
    reason: str | None = None
    is_final: bool = False

    def to_json(self) -> dict[str, object]:
        at = self.at.isoformat() if self.at else None
        return {
            "tools_in_sync": self.in_sync,
            "tools_synced_at": at,
            "reason": self.reason,
            "is_final": self.is_final,
        }


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the parts a call needs; ``failed`` maps the name of each that is away to why."""

    memory_db_connected: bool
    agent_resolved: bool
    failed: dict[str, str]
    sync: Sync

    @property
    def ok(self) -> bool:
        return self.memory_db_connected and self.agent_resolved

    def to_json(self, *, version: str, tool_count: int) -> dict[str, object]:
        return {
            "status": "ok" if self.ok else "degraded",
            "version": version,
            "memory_db_connected": self.memory_db_connected,
            "agent_resolved": self.agent_resolved,
            "failed": self.failed,
            "tools": tool_count,
            "sync": self.sync.to_json(),
        }


@functools.cache
def installed_version() -> str:
    """Return the version of han-solo that runs."""
    return importlib.metadata.version("han-solo")
