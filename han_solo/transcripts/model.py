"""Rows and damage of transcripts, as values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple

Kind = Literal[
    "prompt",
    "answer",
    "thinking",
    "tool_call",
    "tool_result",
    "queued_prompt",
    "compact_summary",
    "summary",
    "title",
    "meta",
    "system",
    "attachment",
    "event",
    "unknown",
]
"""What a record is.

``prompt`` and ``answer`` are speech. ``queued_prompt`` was typed while a tool ran. ``summary`` and
``compact_summary`` were written by the program, not said; ``meta`` was put in by it. ``event`` is
all that is known and says nothing (progress, snapshots, modes). ``unknown`` is kept raw.
"""

SPEECH: Final = ("prompt", "queued_prompt", "answer")
"""What a search looks in unless told otherwise, with titles and summaries."""

SIDE: Final = "side"
"""A side agent that the record does not name; its file may."""

DamageKind = Literal[
    "broken",
    "not_an_object",
    "bad_shape",
    "bad_message",
    "bad_utf8",
    "nul_bytes",
    "nul_in_text",
    "several_on_a_line",
]
"""``broken``, ``not_an_object``, ``bad_shape`` and ``bad_message`` cost the record, whose bytes are
kept; the others were put right, and the record is there."""

QUARANTINED: Final = frozenset({"broken", "not_an_object", "bad_shape", "bad_message"})


class Row(NamedTuple):
    """One record. ``offset`` and ``size`` say where in the file it stands, in bytes."""

    offset: int
    size: int
    session_id: str | None
    agent_id: str | None
    uuid: str | None
    parent_uuid: str | None
    kind: Kind
    subtype: str
    at: datetime | None
    cwd: str | None
    text: str
    raw: str | None
    digest: bytes
    message_id: str | None
    model: str | None
    usage: tuple[int, int, int, int] | None
    redacted: int


@dataclass(frozen=True, slots=True)
class Damage:
    """Something wrong in a file, and where. ``raw`` is kept of what is quarantined."""

    offset: int
    kind: DamageKind
    raw: bytes = field(default=b"", repr=False)


@dataclass(slots=True)
class Parsed:
    """What a piece of a file held. ``consumed`` bytes of it need not be read again."""

    rows: list[Row] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    consumed: int = 0

    def count_kinds(self) -> Counter[str]:
        return Counter(row.kind for row in self.rows)

    def count_damage(self) -> Counter[str]:
        return Counter(found.kind for found in self.damage)
