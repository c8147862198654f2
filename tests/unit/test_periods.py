"""Which day or hour a run is for, over clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from han_solo.declare import Daily, Hourly
from han_solo.runs.periods import find_next, find_period

OSLO = ZoneInfo("Europe/Oslo")


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


def test_a_run_before_the_due_time_is_for_the_day_before():
    found = find_period(Daily("03:30"), utc(2026, 12, 1, 2, 0), OSLO)

    assert found.name == "2026-11-30"


def test_a_machine_that_was_off_runs_for_the_last_day_only():
    found = find_period(Daily("03:30"), utc(2026, 12, 1, 20, 0), OSLO)

    assert found.name == "2026-12-01"
    assert found.due_at == utc(2026, 12, 1, 2, 30)


def test_a_due_time_that_the_clock_skips_still_has_its_day():
    """In Oslo 02:30 does not exist on 29 March 2026."""
    found = find_period(Daily("02:30"), utc(2026, 3, 29, 12, 0), OSLO)

    assert found.name == "2026-03-29"
    assert found.due_at == utc(2026, 3, 29, 1, 30)


def test_a_due_time_that_comes_twice_is_the_first():
    """In Oslo 02:30 comes twice on 25 October 2026."""
    first = find_period(Daily("02:30"), utc(2026, 10, 25, 0, 30), OSLO)
    second = find_period(Daily("02:30"), utc(2026, 10, 25, 1, 30), OSLO)

    assert first == second
    assert first.name == "2026-10-25"


def test_an_hour_is_one_of_utc():
    assert find_period(Hourly(15), utc(2026, 12, 1, 7, 14), OSLO).name == "2026-12-01T06Z"
    assert find_period(Hourly(15), utc(2026, 12, 1, 7, 15), OSLO).name == "2026-12-01T07Z"


@pytest.mark.parametrize("zone", ["Europe/Oslo", "America/New_York", "Pacific/Apia", "UTC"])
@given(
    start=st.datetimes(datetime(2011, 12, 25), datetime(2027, 1, 1)),  # noqa: DTZ001
    minutes=st.integers(0, 1439),
)
def test_over_three_days_each_period_comes_once_and_in_order(zone, start, minutes):
    when = Daily(f"{minutes // 60:02}:{minutes % 60:02}")
    place = ZoneInfo(zone)
    now = start.replace(tzinfo=UTC)
    seen = [find_period(when, now + timedelta(minutes=20 * n), place) for n in range(3 * 72)]

    changes = [period for n, period in enumerate(seen) if n == 0 or period != seen[n - 1]]
    assert changes == sorted(set(changes), key=lambda period: period.due_at)
    assert len({period.name for period in changes}) == len(changes)
    for moment, period in zip(range(3 * 72), seen, strict=True):
        at = now + timedelta(minutes=20 * moment)
        assert period.due_at <= at < find_next(when, at, place).due_at
