"""A timer wakes a job whenever it is due: in any zone, and in the nights when clocks change."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from han_solo.declare import Daily, Hourly
from han_solo.runs.periods import find_next
from han_solo.timers.wakes import CATCH_UP_MIN, Wake, list_wakes

TODAY = date(2026, 1, 10)
OSLO, NEW_YORK, KOLKATA, HOWE = map(
    ZoneInfo, ("Europe/Oslo", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
)
ZONES = st.sampled_from([OSLO, NEW_YORK, KOLKATA, HOWE, ZoneInfo("Africa/Casablanca"), UTC])


def test_a_time_of_the_machines_own_zone_is_one_time_and_its_catch_ups():
    wakes = list_wakes(Daily("03:30"), KOLKATA, KOLKATA, TODAY)
    assert wakes[0] == Wake(3, 30)
    assert len(wakes) == 1 + len(CATCH_UP_MIN)


def test_a_time_that_the_clock_skips_once_a_year_is_woken_for_when_it_would_have_been():
    assert Wake(3, 30) in list_wakes(Daily("02:30"), OSLO, OSLO, TODAY)


def test_a_time_of_another_zone_is_woken_for_at_each_hour_that_it_can_be():
    wakes = list_wakes(Daily("03:30"), OSLO, NEW_YORK, TODAY)
    assert {Wake(21, 30), Wake(22, 30)} <= set(wakes)


def test_an_hourly_job_follows_the_minutes_of_the_machines_zone():
    assert list_wakes(Hourly(5), UTC, OSLO, TODAY) == (Wake(None, 5),)
    assert list_wakes(Hourly(5), UTC, KOLKATA, TODAY) == (Wake(None, 35),)
    assert list_wakes(Hourly(5), UTC, HOWE, TODAY) == (Wake(None, 5), Wake(None, 35))


@given(
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
    zone=ZONES,
    clock_zone=ZONES,
    days=st.integers(0, 700),
)
def test_every_due_time_of_the_next_two_years_is_a_wake(hour, minute, zone, clock_zone, days):
    when = Daily(f"{hour:02}:{minute:02}")
    now = datetime(2026, 1, 10, 12, tzinfo=UTC) + timedelta(days=days)
    due = find_next(when, now, zone).due_at.astimezone(clock_zone)
    assert Wake(due.hour, due.minute) in list_wakes(when, zone, clock_zone, TODAY)


@pytest.mark.parametrize("when", [Daily("03:30"), Hourly(0)])
def test_wakes_are_the_same_on_every_day_so_that_nothing_is_written_anew(when):
    found = {
        list_wakes(when, OSLO, NEW_YORK, TODAY + timedelta(days=days)) for days in (0, 99, 300)
    }
    assert len(found) == 1
