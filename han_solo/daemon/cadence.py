"""When what is due: names with an interval each, kept by ``schedule``.

A callback of ``schedule`` only marks its name as due, here and now: one that raises would leave the
library with a job that is not marked as run, and one that is a coroutine it never awaits. The loop
takes the marks and does the work.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from typing import Final, cast

import schedule

JITTER: Final = 0.1
"""Of an interval, at random: many daemons of one Letta should not look at the same instant."""


class Cadence:
    """Everything is due at first, and then each again after its interval."""

    def __init__(self, every_s: Mapping[str, float]) -> None:
        self._scheduler = schedule.Scheduler()
        self._due: set[str] = set(every_s)
        for name, seconds in every_s.items():
            interval = seconds * random.uniform(1 - JITTER, 1)  # noqa: S311 - jitter
            # It multiplies a timedelta, so a fraction of a second is as good as the whole ones.
            self._scheduler.every(cast("int", interval)).seconds.do(self._due.add, name)

    def take_due(self) -> frozenset[str]:
        """Return what is due now, once."""
        self._scheduler.run_pending()
        due = frozenset(self._due)
        self._due.clear()
        return due

    @property
    def idle_s(self) -> float:
        """Return the seconds until something is due."""
        found = self._scheduler.idle_seconds
        return 1.0 if found is None else max(found, 0.0)


def count_in_utc() -> None:
    """Have this process count local time in UTC.

    ``schedule`` counts in naive local time: when the clocks go back, nothing would be due for an
    hour. Who needs the zone asks for it by name before.
    """
    os.environ["TZ"] = "UTC"
    time.tzset()
