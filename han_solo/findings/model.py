"""The rows of findings, guard runs and remedies, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from ..declare import Severity

RemedyOutcome = Literal["done", "no_effect", "failed", "abandoned"]

COULD_NOT_LOOK: Final = "check_failed"
"""Key of the finding that a guard's own check failed; what it saw earlier stays open meanwhile."""

LEAST_ALERT_PAUSE: Final = timedelta(minutes=1)
LONGEST_ALERT_PAUSE: Final = timedelta(hours=1)
"""Between two tries of an alert that does not go out; the pause grows with the finding's age."""

OLDEST_NEWS: Final = timedelta(days=1)
"""What opened longer ago and is repaired is no longer told."""

FIRST_PAUSE: Final = timedelta(minutes=1)
LONGEST_PAUSE: Final = timedelta(hours=1)
"""Between two tries of a remedy that does not help: doubled each time, since what it can not mend
now it will hardly mend a minute later, and each try writes to Letta."""


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding, from its opening until it was resolved."""

    id: int
    guard: str
    agent_id: str
    key: str
    severity: Severity
    summary: str
    hint: str
    detail: Mapping[str, object]
    opened_at: datetime
    last_seen_at: datetime
    times_seen: int
    alerted_at: datetime | None
    resolved_at: datetime | None

    @property
    def is_open(self) -> bool:
        return self.resolved_at is None


@dataclass(frozen=True, slots=True)
class GuardRun:
    """The last run of a guard. ``looked_at`` is when it last could look; ``error`` why not now."""

    guard: str
    agent_id: str
    finished_at: datetime
    looked_at: datetime | None
    duration_ms: int
    findings: int
    error: str | None


@dataclass(frozen=True, slots=True)
class RemedyRow:
    """One attempt to repair; ``outcome`` is None while it runs."""

    id: int
    guard: str
    agent_id: str
    finding_ids: tuple[int, ...]
    epoch: int
    started_at: datetime
    finished_at: datetime | None
    outcome: RemedyOutcome | None
    what: str | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a run changed: ids of findings that are open, that are new, and that are gone.

    ``is_stale``: another look was recorded while this one looked; nothing was recorded of it.
    """

    open_ids: tuple[int, ...] = ()
    opened_ids: tuple[int, ...] = ()
    resolved: Mapping[int, str] = field(default_factory=dict)
    """Key of each resolved finding, by id."""
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class Alert:
    """A finding that somebody is to be told of, and the last remedy that was tried on it."""

    finding: FindingRow
    remedy: RemedyRow | None


@dataclass(frozen=True, slots=True)
class Tries:
    """How often a remedy failed in a row, when it last did, and on which findings."""

    failures: int = 0
    last_at: datetime | None = None
    finding_ids: frozenset[int] = frozenset()

    def find_next(self, finding_ids: Iterable[int]) -> datetime | None:
        """Return when the remedy may be tried again; None: now.

        Something that it was not tried on yet is tried at once.
        """
        if self.last_at is None or not self.finding_ids.issuperset(finding_ids):
            return None
        pause: timedelta = FIRST_PAUSE * (2 ** (self.failures - 1))
        return self.last_at + min(pause, LONGEST_PAUSE)
