"""How blocks and versions are shown: bars, ages, who and why."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from han_solo.blocks.model import BlockState, Event, VersionEntry
from han_solo.cli import block_view
from han_solo.cli.block_text import visible
from han_solo.letta.views import BlockView

NOW = datetime(2030, 1, 2, 12, tzinfo=UTC)


def _state(label: str = "notes", *, chars: int = 10, limit: int = 100, **more: Any) -> BlockState:
    version = more.pop("version", 3)
    fields = {"read_only": False, "description": ""} | more
    view = BlockView(id="block-1", label=label, value="x" * chars, limit=limit, **fields)
    return BlockState(view=view, version=version, sha256="0" * 64, writers=("operator",))


def _entry(number: int = 3, **more: Any) -> VersionEntry:
    fields: dict[str, Any] = {
        "block_id": "block-1",
        "number": number,
        "label": "notes",
        "agent_id": "agent-1",
        "sha256": "0" * 64,
        "length": 10 * number,
        "author_kind": "operator",
        "author": "scott",
        "reason": "",
        "origin": "write",
        "source": None,
        "created_at": NOW - timedelta(minutes=number),
    }
    return VersionEntry(**(fields | more))


def _show(*what: Any, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    for part in what:
        console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(
    ("length", "limit", "drawn", "style"),
    [
        (0, 100, "░░░░░░░░", "green"),
        (1, 100_000, "▏░░░░░░░", "green"),
        (50, 100, "████░░░░", "green"),
        (80, 100, "██████▍░", "yellow"),
        (95, 100, "███████▋", "red"),
        (100, 100, "████████", "red"),
        (101, 100, "████████", "bold red"),
        (0, 0, "████████", "red"),
    ],
)
def test_a_bar_is_as_full_as_the_block(length: int, limit: int, drawn: str, style: str) -> None:
    bar = block_view.build_bar(length, limit, 8)
    assert bar.plain == drawn
    assert bar.style == style


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_list_fits_its_terminal(width: int) -> None:
    states = [
        _state("scott_portrait_forming", chars=99_999, limit=100_000),
        _state("a_label_of_an_agent_that_likes_long_ones_very_much", version=None),
    ]
    last = {state.label: _entry(1234, author="a-client-of-a-long-name") for state in states}
    shown = _show(block_view.build_list(states, last, NOW, width), width=width)
    assert len(shown.splitlines()) == 3
    assert max(map(len, shown.splitlines())) <= width
    if width >= 80:
        assert "99,999 of 100,000" in shown
        assert "scott_portrait_forming" in shown
        assert "1234*" in shown


def test_what_needs_someone_is_said_below_the_list() -> None:
    states = [_state("fine"), _state("edited", version=None), _state("full", chars=101)]
    notes = _show(*block_view.build_notes(states, {"edited": _entry(), "fine": _entry()}))
    assert "somebody wrote around han-solo: edited." in notes
    assert "no write fits: full." in notes


def test_a_block_without_versions_is_no_outside_edit() -> None:
    assert not list(block_view.build_notes([_state(version=None)], {}))


def test_the_history_shows_differences_in_size_also_of_the_oldest() -> None:
    entries = [_entry(3, length=5), _entry(2, length=50, reason="why [not]"), _entry(1, length=50)]
    shown = _show(block_view.build_history(entries[:2], entries[2], NOW))
    assert "-45" in shown
    assert "why [not]" in shown
    assert "+50" in _show(block_view.build_history(entries, None, NOW))


def test_an_entry_says_what_it_is_in_one_line() -> None:
    entry = _entry(9, origin="restored", source=4, author_kind="client", author="claude-code")
    line = block_view.build_entry(entry, NOW).plain
    assert line == ("notes version 9, 90 characters, restored 4 by claude-code (client), 9 min ago")


@pytest.mark.parametrize("kind", ["first_seen", "settled", "repaired", "a kind of tomorrow"])
def test_every_event_can_be_shown(kind: Any) -> None:
    event = Event(kind=kind, sentence="Letta held version 1 again.", version=3)
    assert "notes: Letta held version 1 again." in block_view.build_event("notes", event).plain


@pytest.mark.parametrize(
    ("ago_s", "told"),
    [(-5, "0 s"), (0, "0 s"), (59, "59 s"), (60, "1 min"), (3_600, "1 h"), (200_000, "2 d")],
)
def test_ages_are_told_in_the_largest_unit(ago_s: int, told: str) -> None:
    assert block_view.tell_age(NOW - timedelta(seconds=ago_s), NOW) == told


def test_control_characters_are_seen_and_line_ends_stay() -> None:
    assert visible("a\x1b[0m\r\n\tb\x7f\x9b\0é👩\u200d🚀") == "a␛[0m␍\n\tb␡<9b>␀é👩\u200d🚀"
    assert Text(visible("x")).plain == "x"
