"""What can still be had of a line that does not decode as one record, and what is kept of the rest.

Slow and rare. Bytes that are not UTF-8 are replaced, NULs skipped, objects that share a line taken
one by one; what is left is quarantined with its bytes, secrets taken out, and its place. A record
that was torn off by a crash has the next one behind it on its line, so the search goes on there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from .errors import BadMessage
from .model import Damage, DamageKind, Parsed, Row
from .redact import redact_bytes
from .shape import Record, record_decoder

_DECODER: Final = json.JSONDecoder()

_START: Final = re.compile(
    r'\{"(?:type|parentUuid|logicalParentUuid|sessionId|uuid|isSidechain|userType|cwd|timestamp|'
    r'agentId|operation|summary|leafUuid|version)"\s*:'
)
"""How a record may begin."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_MAX_STARTS: Final = 64
"""Tried behind one torn record, so that no line takes for ever."""


@dataclass(frozen=True, slots=True)
class Salvage:
    """The salvage of one line; ``build_row`` and ``clean`` are the parser's own."""

    offset: int
    found: Parsed
    build_row: Callable[[Record, bytes, int], Row]
    clean: Callable[[Row, Parsed], Row]

    def take(self, line: bytes) -> None:
        """Take what the line holds into ``found``."""
        text, marks = _repair(line)
        for mark in marks:
            self._mark(mark)
        at, count = 0, 0
        while (at := _skip(text, at)) < len(text):
            try:
                value, stop = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError):
                stop = _find_record(text, at + 1)
                self._quarantine(text[at:stop], "broken")
                at = stop
                continue
            count += 1
            self._take_value(value, text[at:stop])
            at = stop
        if count > 1:
            self._mark("several_on_a_line")

    def _take_value(self, value: object, text: str) -> None:
        if not isinstance(value, dict):
            self._quarantine(text, "not_an_object")
            return
        # Written anew, so that half a surrogate pair, which the decoder refuses, is replaced.
        try:
            line = _SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)).encode()
            record = record_decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError):
            self._quarantine(text, "bad_shape")
            return
        try:
            row = self.build_row(record, line, self.offset)
        except (msgspec.MsgspecError, RecursionError, BadMessage):
            self._quarantine(text, "bad_message")
            return
        self.found.rows.append(self.clean(row, self.found) if "\\u0000" in text else row)

    def _mark(self, kind: DamageKind) -> None:
        self.found.damage.append(Damage(self.offset, kind))

    def _quarantine(self, text: str, kind: DamageKind) -> None:
        raw = text.encode("utf-8", "surrogateescape")  # the bytes that were not UTF-8, too
        self.found.damage.append(Damage(self.offset, kind, redact_bytes(raw)))


def _find_record(text: str, at: int) -> int:
    """Return where the next whole record begins, or the end.

    A torn record's own parts are no records: those have a type and say their session.
    """
    for tried, start in enumerate(_START.finditer(text, at)):
        if tried == _MAX_STARTS:
            break
        try:
            value, _stop = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and {"type", "sessionId"} <= value.keys():
            return start.start()
    return len(text)


def _repair(line: bytes) -> tuple[str, list[DamageKind]]:
    marks: list[DamageKind] = []
    if b"\x00" in line:
        line = line.replace(b"\x00", b"")
        marks.append("nul_bytes")
    try:
        return line.decode("utf-8"), marks
    except UnicodeDecodeError:
        marks.append("bad_utf8")
        return line.decode("utf-8", "surrogateescape"), marks


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at
