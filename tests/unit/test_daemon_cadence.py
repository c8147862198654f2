"""When guards and jobs are due, and when what could not look is tried again."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from han_solo.daemon import cadence
from han_solo.daemon.cadence import Cadence, Retries


class Time:
    """The wall clock that ``schedule`` reads, and the one that counts pauses."""

    def __init__(self) -> None:
        self.wall = dt.datetime(2030, 1, 2, 3, 4, 5)  # noqa: DTZ001 - as schedule counts
        self.counted_s = 100.0

    def pass_by(self, seconds: float) -> None:
        self.wall += dt.timedelta(seconds=seconds)
        self.counted_s += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    now = Time()

    class Moment(dt.datetime):
        @classmethod
        def now(cls, _zone: Any = None) -> Any:
            return now.wall

    monkeypatch.setattr(dt, "datetime", Moment)
    monkeypatch.setattr(cadence.time, "monotonic", lambda: now.counted_s)
    return now


def test_all_is_due_at_first_and_each_again_after_its_interval(time: Time) -> None:
    beat = Cadence({"often": 10, "seldom": 100})
    assert beat.take_due() == {"often", "seldom"}
    assert beat.take_due() == set()
    assert 9 <= beat.idle_s <= 10

    time.pass_by(10)
    assert beat.take_due() == {"often"}
    time.pass_by(90)
    assert beat.take_due() == {"often", "seldom"}


def test_what_was_missed_while_the_machine_slept_is_due_once(time: Time) -> None:
    beat = Cadence({"often": 10})
    beat.take_due()
    time.pass_by(3600)
    assert beat.take_due() == {"often"}
    assert beat.take_due() == set()


def test_a_clock_that_is_set_back_delays_nothing(time: Time) -> None:
    beat = Cadence({"often": 10})
    beat.take_due()
    time.pass_by(-3600)
    assert beat.take_due() == {"often"}
    assert beat.idle_s <= 10
    time.pass_by(10)
    assert beat.take_due() == {"often"}


def test_what_could_not_look_is_tried_again_soon_and_then_less_often(time: Time) -> None:
    again = Retries({"hourly": 3600, "often": 5})
    pauses = []
    for _ in range(8):
        again.note(frozenset(), frozenset({"hourly"}))
        pauses.append(again.idle_s)
        time.pass_by(again.idle_s)
        assert again.take_due() == {"hourly"}
        assert again.take_due() == set()
    assert pauses[0] <= 2
    assert 30 <= pauses[-1] <= 60
    again.note(frozenset(), frozenset({"often"}))
    again.note(frozenset(), frozenset({"often"}))
    again.note(frozenset(), frozenset({"often"}))
    assert again.idle_s <= 5, "never later than at its interval"


def test_once_one_can_look_again_all_try_at_once(time: Time) -> None:
    again = Retries({"a": 3600, "b": 3600})
    for _ in range(5):
        again.note(frozenset(), frozenset({"a", "b"}))
    assert again.blind == {"a", "b"}

    again.note(frozenset({"a"}), frozenset())

    assert again.take_due() == {"b"}
    again.note(frozenset({"b"}), frozenset())
    assert again.blind == set()
    assert again.idle_s == float("inf")
