"""Reading files of passages: JSON lines, or prose that is one passage a file.

A file is read line by line, as often as it takes: to check it all before anything is written, and
to write it. Nothing of it is kept in memory but the line at hand.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

import msgspec

from ..errors import HanSoloError, UsageError
from ..principals import Principal
from .passage_model import DEFAULT_SCOPE, MAX_NAME_CHARS, MAX_TEXT_CHARS
from .transfer_line import PassageLine, read_line

LINE_SUFFIXES: Final = (".jsonl", ".ndjson")
PROSE_SUFFIXES: Final = (".md", ".markdown", ".txt")

MAX_LINE_BYTES: Final = 64 * 2**20
"""The longest text, each of its characters escaped, and what stands around it."""

FAULTS_SHOWN: Final = 20

_DECODER: Final = msgspec.json.Decoder(PassageLine)
_BOM: Final = b"\xef\xbb\xbf"
_HEADING: Final = re.compile(r"#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What prose says nothing of."""

    scope: str = DEFAULT_SCOPE
    tags: tuple[str, ...] = ()
    author: str = ""
    origin: str = "external"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read. ``name`` is what it is called in errors; ``lines``: JSON, one a line."""

    path: Path
    name: str
    lines: bool


@dataclass(frozen=True, slots=True)
class Files:
    """What is to be imported."""

    sources: tuple[Source, ...]
    defaults: Defaults


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands; ``number`` counts lines from 1, None in prose."""

    source: Source
    number: int | None

    def __str__(self) -> str:
        return self.source.name if self.number is None else f"{self.source.name}:{self.number}"


@dataclass(slots=True)
class Checked:
    """What is in the files; ``faults`` are the first ``FAULTS_SHOWN`` of ``faulty`` passages."""

    files: int = 0
    passages: int = 0
    notes: int = 0
    links: int = 0
    faulty: int = 0
    faults: list[str] = field(default_factory=list)


def find_sources(paths: Sequence[Path]) -> list[Source]:
    """Return the files to read, those of a directory in the order of their names.

    Raises:
        UsageError: one is not there, or is of no kind that is read.
    """
    sources = []
    for path in paths:
        if path.is_dir():
            within = [
                _source(each, str(each))
                for each in sorted(path.rglob("*"))
                if each.suffix.lower() in LINE_SUFFIXES + PROSE_SUFFIXES and each.is_file()
            ]
            if not within:
                raise UsageError(
                    f"There is no file to import in {path}.",
                    hint=f"Names end in {', '.join(LINE_SUFFIXES + PROSE_SUFFIXES)}.",
                )
            sources += within
        elif not path.is_file():
            raise UsageError(f"There is no file {path}.", hint="Give a file or a directory.")
        elif path.suffix.lower() not in LINE_SUFFIXES + PROSE_SUFFIXES:
            raise UsageError(
                f"What kind of file {path} is can not be told from its name.",
                hint=f"Have it end in {' or '.join(LINE_SUFFIXES)} (one JSON object a line), or in "
                f"{', '.join(PROSE_SUFFIXES)} (one passage).",
            )
        else:
            sources.append(_source(path, str(path)))
    return sources


def read_lines(files: Files) -> Iterator[tuple[Place, PassageLine | UsageError]]:
    """Yield each passage in the files, or what is wrong with it.

    Raises:
        UsageError: a file can not be read.
    """
    for source in files.sources:
        try:
            with source.path.open("rb") as file:
                if source.lines:
                    yield from _read_json(source, file)
                else:
                    yield Place(source, None), _read_prose(source, file, files.defaults)
        except OSError as error:
            raise UsageError(
                f"{source.name} can not be read: {error.strerror}.", hint="Nothing was written."
            ) from error


def check_files(files: Files, principal: Principal, now: datetime) -> Checked:
    """Read all of it and say what is there, and what of it can not be written.

    Raises:
        UsageError: a file can not be read.
    """
    found = Checked(files=len(files.sources))
    first_places: dict[str, str] = {}
    for place, line in read_lines(files):
        found.passages += 1
        try:
            if isinstance(line, UsageError):
                raise line
            read_line(line, principal, now)
            if line.key is not None:
                _check_key(line.key, str(place), first_places)
            found.notes += len(line.notes)
            found.links += len(line.links)
        except HanSoloError as error:
            found.faulty += 1
            if len(found.faults) < FAULTS_SHOWN:
                found.faults.append(f"{place}: {error.message}")
    return found


def _check_key(key: str, place: str, first_places: dict[str, str]) -> None:
    if key in first_places:
        raise UsageError(f"Its key is that of {first_places[key]} too: {key[:60]!r}.")
    first_places[key] = place


def _source(path: Path, name: str) -> Source:
    return Source(path, name, path.suffix.lower() in LINE_SUFFIXES)


def _read_json(source: Source, file: IO[bytes]) -> Iterator[tuple[Place, PassageLine | UsageError]]:
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if number == 1:
            raw = raw.removeprefix(_BOM)
        place = Place(source, number)
        if len(raw) > MAX_LINE_BYTES:
            yield place, UsageError(f"It is longer than {MAX_LINE_BYTES // 2**20} MiB.")
            return
        if raw.strip():
            yield place, _decode(raw)


def _decode(raw: bytes) -> PassageLine | UsageError:
    try:
        return _DECODER.decode(raw)
    except msgspec.ValidationError as error:
        return UsageError(f"{error}.")
    except msgspec.DecodeError as error:
        return UsageError(f"It is no JSON object: {error}.")
    except UnicodeDecodeError as error:
        return UsageError(f"It is not UTF-8: byte 0x{raw[error.start]:02x} at {error.start}.")


def _read_prose(source: Source, file: IO[bytes], defaults: Defaults) -> PassageLine | UsageError:
    raw = file.read(4 * MAX_TEXT_CHARS + 1).removeprefix(_BOM)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        return UsageError(f"It is not UTF-8: byte 0x{raw[error.start]:02x} at {error.start}.")
    text = text.replace("\r\n", "\n").strip()
    changed = datetime.fromtimestamp(source.path.stat().st_mtime, UTC)
    held = f"{source.path.name}\0{defaults.scope}\0{text}"
    return PassageLine(
        key=f"file-{hashlib.sha256(held.encode()).hexdigest()}",
        text=text,
        title=_title(text, source.path),
        author=defaults.author,
        origin=defaults.origin,
        source=source.path.name[:MAX_NAME_CHARS],
        scope=defaults.scope,
        tags=defaults.tags,
        happened_at=changed.isoformat(timespec="seconds"),
    )


def _title(text: str, path: Path) -> str:
    first = text.partition("\n")[0]
    heading = _HEADING.fullmatch(first)
    return (heading[1] if heading else path.stem)[:MAX_NAME_CHARS]
