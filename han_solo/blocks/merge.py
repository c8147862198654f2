"""Tell from which version an outside edit was made, and join it with what it undid. Pure.

Letta's built-in memory tools, and any page or script that read a block before we wrote it, write
back an old text with a change of their own in it. The text as a whole was never seen before, yet it
undoes our write. Lines are what is compared: the built-in tools insert and append lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

MIN_KEPT: Final = 0.5
"""An edit made on a version keeps at least this part of its characters; less is a new text."""

MAX_LINES: Final = 1_000
"""Of the part that differs. Comparing takes the square of it in the worst case, and it is done
while a tool's caller waits."""


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines ``start`` to ``end`` of the base, and what stands there instead."""

    start: int
    end: int
    lines: tuple[str, ...]

    @property
    def inserts(self) -> bool:
        return self.start == self.end

    def touches(self, other: _Hunk) -> bool:
        return self.start <= other.end and other.start <= self.end


def find_base(found: str, texts: Mapping[int, str]) -> int | None:
    """Return the number of the version that ``found`` was most likely made from.

    That is the version with the fewest characters of lines removed and added, the newest one of
    equals; None when the text keeps too little of any.

    Args:
        found: the text that Letta holds.
        texts: versions by number.
    """
    best: tuple[int, int] | None = None
    for number in sorted(texts, reverse=True):
        text = texts[number]
        kept = _count_kept(text, found)
        if kept is None or not text.strip() or kept < MIN_KEPT * _size(text):
            continue
        distance = _size(text) + _size(found) - 2 * kept
        if best is None or distance < best[0]:
            best = (distance, number)
    return None if best is None else best[1]


def merge(base: str, ours: str, theirs: str) -> str | None:
    """Join two edits of one text, or return None where both changed the same lines.

    What both inserted at one place is kept twice over, ours first: that is how two appends meet.
    """
    base_lines = base.split("\n")
    hunks = _find_hunks(base_lines, ours.split("\n"))
    for hunk in _find_hunks(base_lines, theirs.split("\n")):
        if hunk in hunks:
            continue
        met = [other for other in hunks if other.touches(hunk)]
        if any(not (hunk.inserts and other.inserts) for other in met):
            return None
        hunks.append(hunk)
    merged: list[str] = []
    position = 0
    for hunk in sorted(hunks, key=lambda hunk: hunk.start):  # a stable sort: ours come first
        merged += base_lines[position : hunk.start]
        merged += hunk.lines
        position = hunk.end
    return "\n".join([*merged, *base_lines[position:]])


def _find_hunks(base: list[str], other: list[str]) -> list[_Hunk]:
    matcher = SequenceMatcher(None, base, other, autojunk=False)
    return [
        _Hunk(base_start, base_end, tuple(other[start:end]))
        for tag, base_start, base_end, start, end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _count_kept(text: str, found: str) -> int | None:
    """Count the characters of whole lines that both have in the same order."""
    first, second = text.split("\n"), found.split("\n")
    kept = 0
    while first and second and first[-1] == second[-1]:
        kept += len(first.pop()) + 1
        second.pop()
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        kept += len(first[start]) + 1
        start += 1
    first, second = first[start:], second[start:]
    if len(first) > MAX_LINES or len(second) > MAX_LINES:
        return None
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for match in matcher.get_matching_blocks():
        kept += sum(len(line) + 1 for line in first[match.a : match.a + match.size])
    return kept


def _size(text: str) -> int:
    """Return its characters, with a line end after the last line as after every other."""
    return len(text) + 1
