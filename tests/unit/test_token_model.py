"""Tokens as values: their text, their names, what they may be given, and how long they are good."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from han_solo.cli.tokens import parse_expiry, parse_span
from han_solo.errors import UsageError
from han_solo.principals import KIND_SCOPES, MEMORY_READ
from han_solo.tokens import model

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def record(**changes):
    fields = {
        "id": "abcdefgh",
        "name": "ren",
        "kind": "agent",
        "scopes": frozenset({MEMORY_READ}),
        "created_at": NOW - HOUR,
        "expires_at": None,
        "revoked_at": None,
        "last_used_at": None,
    }
    return model.TokenRecord(**(fields | changes))


def test_a_token_reads_as_documented_and_comes_apart_again():
    token_id, secret = model.new_id(), model.new_secret()
    text = model.build_text(token_id, secret)
    assert re.fullmatch(r"hs_[a-z2-7]{8}_[A-Za-z0-9_-]{43}", text)
    assert model.parse_text(text) == (token_id, secret)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hs_",
        "hs_abcdefgh_short",
        f"hs_ABCDEFGH_{'a' * 43}",
        f"hs_abcdefgh_{'a' * 44}",
        f"xx_abcdefgh_{'a' * 43}",
        f" hs_abcdefgh_{'a' * 43}",
        f"hs_abcdefgh_{'a' * 42}\u00e9",
        f"hs_abcdefgh_{'a' * 43}\n",
        "\ud800",
        "\0",
    ],
)
def test_what_is_no_token_is_told_without_asking_the_database(text):
    assert model.parse_text(text) is None


def test_an_issued_token_does_not_show_itself_in_a_log():
    issued = model.IssuedToken(record(), "hs_abcdefgh_secret")
    assert "secret" not in repr(issued)


@pytest.mark.parametrize("name", ["", "Ren", "-x", ".x", "a b", "a/b", "é", "x" * 64, "a\n", "\0"])
def test_a_name_that_can_not_name_a_file_is_refused(name):
    with pytest.raises(UsageError, match="can not be the name"):
        model.check_name(name)


@pytest.mark.parametrize("name", ["ren", "claude-code", "2nd.bridge_of_mine", "x" * 63])
def test_ordinary_names_are_taken(name):
    assert model.check_name(name) == name


@pytest.mark.parametrize("kind", KIND_SCOPES)
def test_without_scopes_a_token_gets_the_widest_set_of_its_kind(kind):
    assert model.choose_scopes(kind, None) == KIND_SCOPES[kind]


@pytest.mark.parametrize(
    ("kind", "scopes", "words"),
    [
        ("agent", [], "without any scope"),
        ("agent", ["memory:red"], "no scope memory:red"),
        ("agent", ["operator:read"], "can not be given operator:read"),
        ("client", ["memory:read", "admin"], "can not be given admin"),
    ],
)
def test_scopes_beyond_the_kind_or_unknown_are_refused(kind, scopes, words):
    with pytest.raises(UsageError, match=words) as caught:
        model.choose_scopes(kind, scopes)
    assert caught.value.hint


def test_an_unknown_kind_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match=r"agent, client, operator"):
        model.check_kind("root")


@pytest.mark.parametrize(
    ("changes", "state", "ends_at"),
    [
        ({}, "live", None),
        ({"expires_at": NOW + HOUR}, "live", NOW + HOUR),
        ({"expires_at": NOW}, "expired", NOW),
        ({"revoked_at": NOW}, "revoked", NOW),
        ({"revoked_at": NOW + HOUR}, "expiring", NOW + HOUR),
        ({"revoked_at": NOW + HOUR, "expires_at": NOW}, "expired", NOW),
    ],
)
def test_the_state_follows_from_the_times(changes, state, ends_at):
    assert record(**changes).state(NOW) == state
    assert record(**changes).ends_at == ends_at


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", NOW + timedelta(minutes=30)),
        ("12h", NOW + timedelta(hours=12)),
        ("90d", NOW + timedelta(days=90)),
        ("4w", NOW + timedelta(weeks=4)),
        ("2030-01-31", datetime(2030, 1, 31, tzinfo=UTC)),
        ("2030-01-31T10:00+02:00", datetime(2030, 1, 31, 8, tzinfo=UTC)),
    ],
)
def test_an_expiry_is_a_span_or_a_date(text, expected):
    assert parse_expiry(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "soon", "0d", "-1d", "1.5h", "1y", "2030-13-01", "999999w"])
def test_an_expiry_that_is_neither_is_refused(text):
    with pytest.raises(UsageError, match="neither a span nor a date"):
        parse_expiry(text, NOW)


def test_a_date_past_the_calendar_is_refused():
    with pytest.raises(UsageError, match="neither a span nor a date"):
        parse_expiry("9999-12-31T23:59-12:00", NOW)


@pytest.mark.parametrize("text", ["2030-01-31", "10", "m"])
def test_a_grace_is_a_span_only(text):
    with pytest.raises(UsageError, match="not a span"):
        parse_span(text)
