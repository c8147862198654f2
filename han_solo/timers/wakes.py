"""When a timer wakes a job: the clock times that reach its due time on every day to come. Pure.

A timer knows wall-clock times of one zone, and a due time may be counted in another, or fall into
an hour that the clock skips. So a job is woken at every time that its due time can mean over the
next two years, which are one or two, and ``--if-due`` has the ones that are not meant end at once.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from ..declare import Daily, When

DAYS: Final = 2 * 366
"""Far enough to meet every offset of a zone, those of countries that shift by the moon too."""

CATCH_UP_MIN: Final = (30, 60, 120, 240, 480)
"""Minutes after a daily due time at which a run that failed, or found no database, is tried again:
each just past one of the pauses that the runs themselves keep, so that all attempts can be had."""


class Wake(NamedTuple):
    """A clock time; ``hour`` is None for one that comes every hour."""

    hour: int | None
    minute: int


def list_wakes(when: When, zone: ZoneInfo, clock_zone: ZoneInfo, today: date) -> tuple[Wake, ...]:
    """Return the clock times at which a timer has to wake a job.

    Args:
        when: when the job is due.
        zone: the zone that its due times are counted in.
        clock_zone: the zone of the timer's clock.
        today: from which day on.
    """
    days = [today + timedelta(days=ahead) for ahead in range(-1, DAYS)]
    if isinstance(when, Daily):
        moments = [_due(when, day, zone) for day in days]
        after = [timedelta(minutes=late) for late in (0, *CATCH_UP_MIN)]
        clocks = {(moment + late).astimezone(clock_zone) for moment in moments for late in after}
        return tuple(sorted({Wake(clock.hour, clock.minute) for clock in clocks}))
    hours = [datetime.combine(day, time(12, when.minute), tzinfo=UTC) for day in days]
    return tuple(sorted({Wake(None, hour.astimezone(clock_zone).minute) for hour in hours}))


def _due(when: Daily, day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(when.hour, when.minute), tzinfo=zone).astimezone(UTC)
