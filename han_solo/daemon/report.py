"""What a run of guards says: to the daemon's log, to a terminal, and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..declare import GuardMode
from ..findings.model import FindingRow, RemedyOutcome

Mode = GuardMode | Literal["off"]
Outcome = Literal["clear", "found", "repaired", "blind"]
"""``blind``: the check could not look; what it saw earlier stays open."""


@dataclass(frozen=True, slots=True)
class RemedyReport:
    """What came of a remedy.

    ``refused``: somebody else leads, or runs it already; ``deferred``: it did not help lately, and
    is tried again later.
    """

    outcome: RemedyOutcome | Literal["refused", "deferred"]
    what: str


@dataclass(frozen=True, slots=True)
class GuardReport:
    """One run of one guard. ``findings`` are open after it; ``resolved`` are keys now gone."""

    guard: str
    outcome: Outcome
    findings: tuple[FindingRow, ...]
    opened: int
    resolved: tuple[str, ...]
    remedy: RemedyReport | None = None
    error: str | None = None

    @property
    def has_tried(self) -> bool:
        """Say whether a remedy was applied, with whatever effect."""
        return self.remedy is not None and self.remedy.outcome not in {"refused", "deferred"}


def merge(before: GuardReport, after: GuardReport, remedy: RemedyReport | None) -> GuardReport:
    """Return the report of two looks, with what was tried; both may be one."""
    is_done = remedy is not None and remedy.outcome == "done"
    return GuardReport(
        guard=after.guard,
        outcome="repaired" if is_done and not after.findings else after.outcome,
        findings=after.findings,
        opened=before.opened if after is before else before.opened + after.opened,
        resolved=after.resolved if after is before else (*before.resolved, *after.resolved),
        remedy=remedy,
        error=after.error,
    )
