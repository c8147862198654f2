"""Runs of jobs and the pause, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

Outcome = Literal["succeeded", "failed", "timed_out", "abandoned"]
StartedBy = Literal["schedule", "person"]

LEASE_S: Final = 60.0
"""How long a dead process keeps others from running the job; a living one renews it far earlier."""

HEARTBEAT_S: Final = 15.0
"""Three of them may be lost before the lease runs out."""

MAX_ATTEMPTS: Final = 6
"""By itself, for one period; with the pauses between them that is most of a working day."""

FIRST_PAUSE_S: Final = 600.0
LONGEST_PAUSE_S: Final = 2 * 3600.0
"""Between two attempts, doubled each time: what failed a minute ago fails again."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run; ``outcome`` is None while it goes on."""

    id: int
    job: str
    period: str
    due_at: datetime
    is_extra: bool
    attempt: int
    started_by: StartedBy
    holder: str
    started_at: datetime
    heartbeat_at: datetime
    lease_until: datetime
    finished_at: datetime | None
    outcome: Outcome | None
    may_run_again: bool
    evidence: Mapping[str, object] | None
    error: str | None
    traceback: str | None


@dataclass(frozen=True, slots=True)
class Pause:
    """Whether jobs are paused, since when, by whom and why."""

    is_paused: bool
    since: datetime | None = None
    by: str | None = None
    reason: str | None = None


Why = Literal["done", "not_due", "running", "paused", "needs_a_person", "waiting"]


@dataclass(frozen=True, slots=True)
class Declined:
    """Why a run did not start; nothing is wrong with any of these.

    ``done``: the period has its success. ``not_due``: its due time was before the installation.
    ``running``: it runs now, here or elsewhere. ``paused``:
    all jobs are. ``needs_a_person``: it failed in a way in which trying again could do harm, or too
    often. ``waiting``: it failed a moment ago.
    """

    why: Why
    sentence: str
    run: JobRun | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that came to an end. ``is_lost``: another took its lease, and its outcome counts."""

    run: JobRun
    is_lost: bool = False
