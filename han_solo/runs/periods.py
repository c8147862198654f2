"""Periods: the day or hour that a run is for, and when it was due. Pure.

A daily job belongs to the local date of its due time in a named zone; an hourly one to an hour of
UTC. A due time that the clock skips in spring counts from the moment it would have been; one that
comes twice in autumn is the first of the two. Either way the date is one period, and a period has
one success.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from ..declare import Daily, Hourly, When


@dataclass(frozen=True, slots=True)
class Period:
    """``name`` is the date, or the hour in UTC; ``due_at`` is aware UTC."""

    name: str
    due_at: datetime


def find_period(when: When, now: datetime, zone: ZoneInfo) -> Period:
    """Return the last period that is due by now; an earlier one that was missed is not made up."""
    if isinstance(when, Hourly):
        return _hour(when, now)
    today = now.astimezone(zone).date()
    # Due times of tomorrow can be past in no zone, and yesterday's is the last one for certain.
    return next(
        period
        for period in (_day(when, today - timedelta(days=back), zone) for back in range(3))
        if period.due_at <= now
    )


def find_next(when: When, now: datetime, zone: ZoneInfo) -> Period:
    """Return the first period that is due after now."""
    if isinstance(when, Hourly):
        return _hour(when, now + timedelta(hours=1))
    today = now.astimezone(zone).date()
    return next(
        period
        for period in (_day(when, today + timedelta(days=ahead), zone) for ahead in range(3))
        if period.due_at > now
    )


def _day(when: Daily, day: date, zone: ZoneInfo) -> Period:
    local = datetime.combine(day, time(when.hour, when.minute), tzinfo=zone)  # fold 0: the first
    return Period(day.isoformat(), local.astimezone(UTC))


def _hour(when: Hourly, now: datetime) -> Period:
    moment = now.astimezone(UTC)
    hour = moment.replace(minute=0, second=0, microsecond=0)
    if hour + timedelta(minutes=when.minute) > moment:
        hour -= timedelta(hours=1)
    return Period(hour.strftime("%Y-%m-%dT%HZ"), hour + timedelta(minutes=when.minute))
