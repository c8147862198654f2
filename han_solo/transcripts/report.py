"""What a sync did, in figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .model import QUARANTINED


@dataclass(slots=True)
class SyncReport:
    """What a sync did, in figures; ``new`` rows are those that were not known."""

    files: int = 0
    read: int = 0
    unreadable: int = 0
    bytes: int = 0
    records: int = 0
    new: int = 0
    redacted: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    damage: Counter[str] = field(default_factory=Counter)
    duration_s: float = 0.0

    @property
    def quarantined(self) -> int:
        return sum(count for kind, count in self.damage.items() if kind in QUARANTINED)

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "files": self.files,
            "read": self.read,
            "unreadable": self.unreadable,
            "bytes": self.bytes,
            "records": self.records,
            "new": self.new,
            "redacted": self.redacted,
            "quarantined": self.quarantined,
            "kinds": dict(sorted(self.kinds.items())),
            "damage": dict(sorted(self.damage.items())),
            "duration_s": round(self.duration_s, 3),
        }
