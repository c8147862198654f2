"""A diff of two texts of a block: complete, to the character, with the changed words marked."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from han_solo.cli import block_diff

texts = st.text(st.sampled_from("ab \n\r\t\u2028é"), max_size=60)


def _rebuild(lines: tuple[block_diff.Line, ...], kind: str) -> str:
    """Put the lines of one side together again; only whole when all lines are in the diff."""
    found = ""
    for position, line in enumerate(lines):
        if line.kind in {kind, " "}:
            ended = not (position + 1 < len(lines) and lines[position + 1].kind == "!")
            found += line.text + ("\n" if ended else "")
    return found


@given(texts, texts)
def test_both_texts_can_be_read_off_the_diff(old: str, new: str) -> None:
    lines = block_diff.build_lines(old, new)
    assert bool(lines) == (old != new)
    if lines and len(old.split("\n")) <= 2 and len(new.split("\n")) <= 2:
        assert _rebuild(lines, "-") == old
        assert _rebuild(lines, "+") == new


@given(texts, texts)
def test_marked_parts_lie_in_their_line(old: str, new: str) -> None:
    for line in block_diff.build_lines(old, new):
        position = 0
        for start, end in line.spans:
            assert position <= start < end <= len(line.text)
            position = end


def test_the_words_that_changed_are_marked() -> None:
    lines = block_diff.build_lines("He drinks coffee.\n", "He drinks green tea.\n")
    marked = [[line.text[a:b] for a, b in line.spans] for line in lines if line.kind in "+-"]
    assert marked == [["coffee"], ["green tea"]]


def test_lines_with_little_in_common_are_not_marked() -> None:
    lines = block_diff.build_lines("alpha beta gamma\n", "one two, three: four\n")
    assert all(not line.spans for line in lines)


def test_long_texts_show_the_lines_around_the_change() -> None:
    old = "".join(f"line {n}\n" for n in range(100))
    lines = block_diff.build_lines(old, old.replace("line 50\n", "changed\n"))
    assert [line.text for line in lines if line.kind == "@"] == ["@@ -48,7 +48,7 @@"]
    assert len(lines) == 9
    assert block_diff.count(lines) == (1, 1)


def test_a_missing_line_end_and_a_carriage_return_are_seen() -> None:
    plain = block_diff.to_plain(block_diff.build_lines("a\r\n", "a"), "notes 1", "notes 2")
    assert plain == (
        "--- notes 1\n+++ notes 2\n@@ -1 +1 @@\n-a\u240d\n+a\n\\ No newline at end of text"
    )


def test_a_terminal_is_not_told_what_to_do_by_a_text() -> None:
    rendered = block_diff.render(block_diff.build_lines("", "\x1b[2Jgone [red]x[/]\n"), "a", "b")
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(rendered)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[2J" not in shown
    assert "\u241b[2Jgone [red]x[/]" in shown


def test_ten_thousand_lines_take_a_moment() -> None:
    old = "".join(f"line {n}\n" for n in range(10_000))
    assert block_diff.count(block_diff.build_lines(old, old + "more\n")) == (1, 0)
