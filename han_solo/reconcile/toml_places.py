"""Where in a TOML text a key stands: line and column of a path such as ``("blocks", 2, "limit")``.

``tomllib`` gives a place for a syntax error and none for a value that is merely wrong, and the
parsers that keep places are whole editors. This reads keys and table headers only, in a text that
``tomllib`` has accepted already; what stands inside an inline value has the place of its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a text; both numbers start at 1."""

    line: int
    column: int


_PART: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEY: Final = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER: Final = re.compile(rf"\s*(\[\[?)\s*({_KEY})\s*\]")
_ASSIGNMENT: Final = re.compile(rf"\s*({_KEY})\s*=\s*")
_DELIMITERS: Final = ('"""', "'''")


def find_places(text: str) -> Mapping[Path, Place]:
    """Return the place of every table header and key of a valid TOML text."""
    places: dict[Path, Place] = {}
    lengths: dict[Path, int] = {}
    table: Path = ()
    inside = _Inside()
    for number, line in enumerate(text.split("\n"), start=1):  # only these end a TOML line
        if inside.is_open():
            inside.read(line)
            continue
        if header := _HEADER.match(line):
            names = _split(header[2])
            table = _enter(names, lengths, is_array=header[1] == "[[")
            places.setdefault(table, Place(number, header.start(2) + 1))
        elif assignment := _ASSIGNMENT.match(line):
            place = Place(number, assignment.start(1) + 1)
            path = table
            for name in _split(assignment[1]):
                path = (*path, name)
                places.setdefault(path, place)
            inside.read(line[assignment.end() :])
    return places


def nearest_place(places: Mapping[Path, Place], path: Iterable[str | int]) -> Place | None:
    """Return the place of the path, or of the nearest thing that contains it."""
    wanted = tuple(path)
    while wanted:
        if found := places.get(wanted):
            return found
        wanted = wanted[:-1]
    return None


def _enter(names: tuple[str, ...], lengths: dict[Path, int], *, is_array: bool) -> Path:
    """Return the full path of a header; a name of an array of tables stands for its last item."""
    path: Path = ()
    for position, name in enumerate(names, start=1):
        path = (*path, name)
        if is_array and position == len(names):
            lengths[path] = lengths.get(path, 0) + 1
        if path in lengths:
            path = (*path, lengths[path] - 1)
    return path


def _split(key: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, key))


class _Inside:
    """Whether a value goes on in the next line: a long string, or an open bracket."""

    def __init__(self) -> None:
        self._delimiter: str | None = None
        self._depth = 0

    def is_open(self) -> bool:
        return self._delimiter is not None or self._depth > 0

    def read(self, text: str) -> None:
        at = 0
        while at < len(text):
            if self._delimiter:
                at = self._skip_long_string(text, at)
            elif text.startswith(_DELIMITERS, at):
                self._delimiter = text[at : at + 3]
                at += 3
            elif text[at] in "\"'":
                at = _skip_string(text, at)
            elif text[at] == "#":
                return
            else:
                self._depth += (text[at] in "[{") - (text[at] in "]}")
                at += 1

    def _skip_long_string(self, text: str, at: int) -> int:
        assert self._delimiter
        if text[at] == "\\" and self._delimiter == '"""':
            return at + 2
        if not text.startswith(self._delimiter, at):
            return at + 1
        quote = self._delimiter[0]
        self._delimiter = None
        at += 3
        while at < len(text) and text[at] == quote:  # up to two quotes may stand before the end
            at += 1
        return at


def _skip_string(text: str, at: int) -> int:
    quote = text[at]
    at += 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" and quote == '"' else 1
    return at + 1
