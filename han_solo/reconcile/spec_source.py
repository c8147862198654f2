"""The text of an agent spec and the places in it: from here come errors with line and column."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import SpecError
from . import toml_places
from .spec_file import Fault

_SYNTAX_PLACE: Final = re.compile(r"\s*\(at line (\d+), column (\d+)\)$")
_DOCUMENT_END: Final = re.compile(r"\s*\(at end of document\)$")
_START: Final = toml_places.Place(1, 1)


@dataclass(frozen=True, slots=True)
class SpecSource:
    """A TOML file that parses."""

    path: Path
    data: dict[str, object]
    places: Mapping[toml_places.Path, toml_places.Place]

    def error(self, message: str, where: toml_places.Path, hint: str | None = None) -> SpecError:
        """Return an error at the key, or at the nearest thing that contains it."""
        place = toml_places.nearest_place(self.places, where) or _START
        return SpecError(
            f"{message}.", path=self.path, line=place.line, column=place.column, hint=hint
        )

    def first_error(self, faults: Sequence[Fault]) -> SpecError:
        """Return the first fault in the file's order; the number of others is said."""

        def place_of(fault: Fault) -> tuple[int, int]:
            place = toml_places.nearest_place(self.places, fault.where) or _START
            return place.line, place.column

        first = min(faults, key=place_of)
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return self.error(first.message + more, first.where, first.hint)


def read_source(path: Path) -> SpecSource:
    """Read a spec's file.

    Raises:
        SpecError: it can not be read, is not UTF-8 or is not TOML.
    """
    text = _read(path)
    return SpecSource(path, _parse(text, path), toml_places.find_places(text))


def _read(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SpecError(
            f"the agent spec can not be read: {error.strerror}.",
            path=path,
            hint="Mend HAN_SOLO_AGENT_SPEC; without it the shipped spec is used.",
        ) from error
    try:
        return raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        raise SpecError(
            "the file is not UTF-8.",
            path=path,
            line=before.count(b"\n") + 1,
            column=error.start - (before.rfind(b"\n") + 1) + 1,
        ) from error


def _parse(text: str, path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        line, column = text.count("\n") + 1, 1
        if place := _SYNTAX_PLACE.search(message):
            line, column = int(place[1]), int(place[2])
        sentence = _DOCUMENT_END.sub(", at the end", _SYNTAX_PLACE.sub("", message))
        raise SpecError(f"{sentence}.", path=path, line=line, column=column) from error
