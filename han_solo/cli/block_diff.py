"""Two texts of a block beside each other: a unified diff, the changed words of a line highlighted.

Lines end at line feeds only, so that a block with other line separators in it is not torn apart. A
carriage return is shown, since it may be all that differs.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from rich.text import Text

from .block_text import visible

CONTEXT_LINES: Final = 3
NO_NEWLINE: Final = "\\ No newline at end of text"

MIN_LIKENESS: Final = 0.35
"""The share of characters that two lines must have in common: below it they are different lines,
and single words picked out of them would mislead."""

MAX_PAIRED_CHARS: Final = 20_000
"""Longer lines are not compared word by word: it would take seconds."""

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a diff; ``spans`` are the changed parts of ``text``.

    ``kind`` is ``-``, ``+`` or a space; ``@`` for the heading of a hunk, ``!`` for the remark that
    the line before has no line end.
    """

    kind: str
    text: str
    spans: tuple[tuple[int, int], ...] = ()


def build_lines(old: str, new: str) -> tuple[Line, ...]:
    """Compare two texts; nothing for equal ones."""
    before, after = _split(old), _split(new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return tuple(
        line
        for group in matcher.get_grouped_opcodes(CONTEXT_LINES)
        for line in _build_hunk(before, after, group)
    )


def render(lines: Sequence[Line], old_name: str, new_name: str) -> Text:
    """Render a diff in colours; without colours it is a plain unified diff."""
    text = Text(no_wrap=False, overflow="fold")
    text.append(f"--- {old_name}\n", "bold")
    text.append(f"+++ {new_name}\n", "bold")
    for line in lines:
        text.append(_render_line(line))
        text.append("\n")
    text.right_crop(1)
    return text


def to_plain(lines: Sequence[Line], old_name: str, new_name: str) -> str:
    """Return the diff as text, as ``diff -u`` would write it."""
    return render(lines, old_name, new_name).plain


def count(lines: Sequence[Line]) -> tuple[int, int]:
    """Return how many lines were added and how many removed."""
    kinds = [line.kind for line in lines]
    return kinds.count("+"), kinds.count("-")


def _render_line(line: Line) -> Text:
    if line.kind == "@":
        return Text(line.text, "cyan")
    if line.kind == "!":
        return Text(NO_NEWLINE, "dim")
    style = {"-": "red", "+": "green"}.get(line.kind, "")
    text = Text(line.kind, style)
    position = 0
    for start, end in line.spans:
        text.append(visible(line.text[position:start]), style)
        text.append(visible(line.text[start:end]), f"{style} reverse")
        position = end
    text.append(visible(line.text[position:]), style)
    return text


def _split(text: str) -> list[str]:
    """Split after line feeds; the last line has none when the text does not end in one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


Opcodes = Sequence[tuple[str, int, int, int, int]]


def _build_hunk(before: Sequence[str], after: Sequence[str], group: Opcodes) -> Iterator[Line]:
    _, old_start, _, new_start, _ = group[0]
    _, _, old_end, _, new_end = group[-1]
    heading = f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@"
    yield Line("@", heading)
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            for line in before[i1:i2]:
                yield from _ended(Line(" ", line))
        elif tag == "replace":
            yield from _replace(before[i1:i2], after[j1:j2])
        else:
            for line in before[i1:i2]:
                yield from _ended(Line("-", line))
            for line in after[j1:j2]:
                yield from _ended(Line("+", line))


def _replace(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    olds, news = [], []
    for old, new in zip_longest(before, after):
        old_spans, new_spans = _pair(old, new)
        if old is not None:
            olds.append(Line("-", old, old_spans))
        if new is not None:
            news.append(Line("+", new, new_spans))
    for line in (*olds, *news):
        yield from _ended(line)


Spans = tuple[tuple[int, int], ...]


def _pair(old: str | None, new: str | None) -> tuple[Spans, Spans]:
    """Find the words in which two lines differ; none when they have little in common."""
    if old is None or new is None or len(old) + len(new) > MAX_PAIRED_CHARS:
        return (), ()
    old_words, new_words = _WORD.findall(old), _WORD.findall(new)
    matcher = difflib.SequenceMatcher(None, old_words, new_words, autojunk=False)
    codes = matcher.get_opcodes()
    shared = sum(_weight(old_words[i1:i2]) for tag, i1, i2, _, _ in codes if tag == "equal")
    if 2 * shared < MIN_LIKENESS * (_weight(old_words) + _weight(new_words)):
        return (), ()
    changes = [code for code in codes if code[0] != "equal"]
    return (
        _spans(old_words, [(i1, i2) for _, i1, i2, _, _ in changes]),
        _spans(new_words, [(j1, j2) for _, _, _, j1, j2 in changes]),
    )


def _weight(words: Sequence[str]) -> int:
    """Count characters without the white space, which all lines have in common."""
    return sum(len(word) for word in words if not word.isspace())


def _spans(words: Sequence[str], changes: Sequence[tuple[int, int]]) -> Spans:
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return tuple((starts[i], starts[j]) for i, j in changes if starts[i] < starts[j])


def _ended(line: Line) -> Iterator[Line]:
    """Yield the line without its line feed, and say so where there is none."""
    yield Line(line.kind, line.text.removesuffix("\n"), _clipped(line))
    if not line.text.endswith("\n"):
        yield Line("!", "")


def _clipped(line: Line) -> Spans:
    end = len(line.text.removesuffix("\n"))
    return tuple((start, min(stop, end)) for start, stop in line.spans if start < end)


def _range(start: int, end: int) -> str:
    """Write a range of lines as ``diff -u`` does."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
