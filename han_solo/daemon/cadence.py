"""When what is due: names with an interval each, kept by ``schedule``, and those to try again.

A callback of ``schedule`` only marks its name as due, here and now: one that raises would leave the
library with a job that is not marked as run, and one that is a coroutine it never awaits. The loop
takes the marks and does the work.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import time
from collections.abc import Mapping
from typing import Final, cast

import schedule

JITTER: Final = 0.1
"""Of an interval, at random: many daemons of one Letta should not look at the same instant."""

FIRST_RETRY_S: Final = 2.0
LONGEST_RETRY_S: Final = 60.0
"""Between two tries of what could not look; doubled each time, with jitter, and never longer than
its interval. A server that restarts is back within one of the first."""


class Cadence:
    """Everything is due at first, and then each again after its interval."""

    def __init__(self, every_s: Mapping[str, float]) -> None:
        self._scheduler = schedule.Scheduler()
        self._due: set[str] = set(every_s)
        for name, seconds in every_s.items():
            self._plan(name, seconds * random.uniform(1 - JITTER, 1))  # noqa: S311 - jitter

    def take_due(self) -> frozenset[str]:
        """Return what is due now, once."""
        self._heed_the_clock()
        self._scheduler.run_pending()
        due = frozenset(self._due)
        self._due.clear()
        return due

    @property
    def idle_s(self) -> float:
        """Return the seconds until something is due."""
        found = self._scheduler.idle_seconds
        return 1.0 if found is None else max(found, 0.0)

    def _plan(self, name: str, seconds: float) -> None:
        # It multiplies a timedelta, so a fraction of a second is as good as the whole ones.
        job = self._scheduler.every(cast("int", seconds)).seconds
        job.do(self._due.add, name).tag(name)

    def _heed_the_clock(self) -> None:
        """Plan anew what lies further ahead than its interval: the clock was set back."""
        now = dt.datetime.now()  # noqa: DTZ005 - as schedule counts
        for job in tuple(self._scheduler.jobs):
            every_s = cast("float", job.interval)
            assert job.next_run is not None
            if (job.next_run - now).total_seconds() > every_s + 1:
                (name,) = job.tags
                self._scheduler.cancel_job(job)
                self._due.add(cast("str", name))
                self._plan(cast("str", name), every_s)


class Retries:
    """What is tried again before its interval is over, since it could not look."""

    def __init__(self, every_s: Mapping[str, float]) -> None:
        self._every_s = dict(every_s)
        self._pauses_s: dict[str, float] = {}
        self._at_s: dict[str, float] = {}

    def take_due(self) -> frozenset[str]:
        """Return what is due now, once."""
        now_s = time.monotonic()
        due = frozenset(name for name, at_s in self._at_s.items() if at_s <= now_s)
        for name in due:
            del self._at_s[name]
        return due

    @property
    def idle_s(self) -> float:
        """Return the seconds until something is due; a long time when nothing is."""
        return max(min(self._at_s.values(), default=float("inf")) - time.monotonic(), 0.0)

    def note(self, seen: frozenset[str], blind: frozenset[str]) -> None:
        """Note who could look and who could not; once one can again, all try at once."""
        has_recovered = bool(seen & self._pauses_s.keys())
        for name in seen:
            self._pauses_s.pop(name, None)
            self._at_s.pop(name, None)
        for name in blind:
            pause_s = self._pauses_s.get(name, FIRST_RETRY_S)
            longest_s = min(LONGEST_RETRY_S, self._every_s[name])
            self._pauses_s[name] = min(pause_s * 2, longest_s)
            self._at_s[name] = time.monotonic() + min(pause_s, longest_s) * random.uniform(0.5, 1)  # noqa: S311 - jitter
        if has_recovered:
            self._at_s.update(dict.fromkeys(self._pauses_s.keys() - blind, time.monotonic()))

    @property
    def blind(self) -> frozenset[str]:
        """Return the names that could not look when they last tried."""
        return frozenset(self._pauses_s)


def count_in_utc() -> None:
    """Have this process count local time in UTC.

    ``schedule`` counts in naive local time: when the clocks go back, nothing would be due for an
    hour. Who needs the zone asks for it by name before.
    """
    os.environ["TZ"] = "UTC"
    time.tzset()
