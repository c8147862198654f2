"""What a text tells an index: its chunks, whom it names, whether it asks, whether it tells a time.

All of it is pure and by rule. The rules for questions and times know English; in another language
they find less and do no harm, since each only adds to or takes from a score.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

CHUNK_CHARS: Final = 1_200
"""Some 200 words: longer ones have a vector that is about everything and near nothing."""

MIN_CHUNK_CHARS: Final = 300
"""A boundary that comes sooner is not taken, so that headings stay with what they head."""

MAX_ENTITIES: Final = 200
MAX_NAME_CHARS: Final = 200
ENTITY_CHARS: Final = 100_000
"""Whoever is named further on in a book is found by the words of the chunk all the same."""

_BOUNDARIES: Final = (
    re.compile(r"\n\s*\n"),  # paragraphs
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…。！？])[\"'”’)]*\s+|(?<=[。！？])"),  # noqa: RUF001 - full-width marks
    re.compile(r"\s+"),
)

_WORDS: Final = re.compile(r"[a-z]+")
_TIME_WORDS: Final = frozenset(
    """
    yesterday today tonight tomorrow ago recently since soon planning weekend weekends
    hour hours day days week weeks month months year years decade decades
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    mondays tuesdays wednesdays thursdays fridays saturdays sundays
    """.split()
)
_MONTHS: Final = tuple(
    """
    January February March April May June July August September October November December
    """.split()
)
_CALENDAR: Final = frozenset(
    """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    """.split()
)
"""Capitals that name nobody."""
_TIME_NUMBERS: Final = re.compile(r"\b(?:(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th)|\d{1,2}:\d\d)\b")
_DIGIT: Final = re.compile(r"\d")
_PARTS_OF_TIME: Final = tuple("night morning evening summer winter spring autumn fall".split())
_TIME_PHRASES: Final = re.compile(
    r"\b(?:last|next|this|past|coming) (?:\w+ )?(?:night|morning|evening|summer|winter|spring|"
    r"autumn|fall)\b"
)
_ASKS_TIME: Final = re.compile(
    r"^\W*(?:when\b|since when|how long|how (?:many|much) (?:years|months|weeks|days|time)|"
    r"(?:in|on|at|by|until|from)? ?(?:what|which) (?:exact )?(?:day|date|year|month|week|time|"
    r"season))",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(r"[?？]\W*$")  # noqa: RUF001 - a full-width mark

# Quantifiers are bounded and give nothing back, so that no text takes long. A text that has none of
# the characters beside a pattern can not have what it finds; most texts have few of them.
_ENTITIES: Final[tuple[tuple[str | re.Pattern[str], re.Pattern[str]], ...]] = (
    ("://", re.compile(r"\bhttps?://[^\s<>\"')\]]{1,180}+")),
    ("@", re.compile(r"\b[\w.+-]{1,64}+@[\w-]{1,63}+\.[\w.-]{0,60}\w")),  # addresses
    ("@", re.compile(r"(?<!\w)@[A-Za-z][\w-]{1,60}+")),  # handles
    ("#", re.compile(r"(?<!\w)#[A-Za-z][\w-]{1,60}+")),  # tags
    ("/", re.compile(r"(?<![\w/])(?:~|\.{1,2})?(?:/[\w.@-]{1,60}+){2,20}+")),  # paths
    (
        ".",
        re.compile(r"\.(?:py|md|sql|toml|json|ya?ml|sh|ts|js|rs|go|txt|csv|pdf|png|jpe?g)\b"),
    ),
    ("-", re.compile(r"\b\d{4}-\d\d-\d\d\b")),
    ("-", re.compile(r"\b[A-Z]{2,10}+-\d{1,10}+\b")),  # ticket numbers
    ("_", re.compile(r"\b[a-z]{1,40}+_[a-z0-9_]{1,80}+\b")),  # names in code
    (re.compile(r"[a-z][A-Z]"), re.compile(r"\b[a-z]{1,40}+[A-Z]\w{1,80}+\b")),
    # Names: capitals that do not only begin a sentence. The capital stands first, since that is
    # what is looked for fastest.
    (
        "",
        re.compile(
            r"[A-Z](?<=\b[A-Z])(?<![.!?:\n] [A-Z])(?<!^[A-Z])(?<![\"“‘(\n][A-Z])[\w'’-]{1,40}+"  # noqa: RUF001
            r"(?: (?:(?:of|the|de|van|von) )?[A-Z][\w'’-]{0,40}+){0,5}+"  # noqa: RUF001
        ),
    ),
)
_FILE_NAME: Final = re.compile(r"[\w-]{1,60}$")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; ``first_char`` counts from 1, as Postgres does."""

    first_char: int
    text: str


@dataclass(frozen=True, slots=True)
class Indexed:
    """A chunk as it is indexed; ``embedded`` is what its vector is made of."""

    piece: Piece
    date: str
    embedded: str
    sha256: bytes
    asks: bool
    tells_time: bool


def split_text(text: str) -> tuple[Piece, ...]:
    """Split a text into chunks that together are all of it, at the best boundary within reach."""
    pieces: list[Piece] = []
    start = 0
    while len(text) - start > CHUNK_CHARS:
        end = _find_end(text, start)
        if text[start:end].strip():
            pieces.append(Piece(start + 1, text[start:end]))
        start = end
    if text[start:].strip() or not pieces:
        pieces.append(Piece(start + 1, text[start:]))
    return tuple(pieces)


def _find_end(text: str, start: int) -> int:
    window = text[start : start + CHUNK_CHARS]
    for boundary in _BOUNDARIES:
        ends = [found.end() for found in boundary.finditer(window, MIN_CHUNK_CHARS)]
        if ends and ends[-1]:
            return start + ends[-1]
    return start + CHUNK_CHARS  # one word as long as that


def build_indexed(piece: Piece, *, author: str, title: str, happened_at: datetime) -> Indexed:
    """Return how a chunk is indexed: with its date and whose words it is, which queries name."""
    date = write_date(happened_at)
    embedded = embedded_text(piece.text, author=author, title=title, happened_at=happened_at)
    return Indexed(
        piece=piece,
        date=date,
        embedded=embedded,
        sha256=hashlib.sha256(embedded.encode()).digest(),
        asks=bool(_ASKS.search(piece.text)),
        tells_time=tells_time(piece.text),
    )


def embedded_text(text: str, *, author: str, title: str, happened_at: datetime) -> str:
    """Return what the vector of a chunk is made of."""
    head = f"{author}: " if author else ""
    return f"{write_date(happened_at)} | {f'{title} | ' if title else ''}{head}{text}"


def write_date(moment: datetime) -> str:
    """Write a date in words, as people ask for it."""
    return f"{moment.day} {_MONTHS[moment.month - 1]}, {moment.year}"


def tells_time(text: str) -> bool:
    """Say whether a text has an expression of time in it."""
    lower = text.lower()
    return (
        not _TIME_WORDS.isdisjoint(_WORDS.findall(lower))
        or (any(part in lower for part in _PARTS_OF_TIME) and bool(_TIME_PHRASES.search(lower)))
        or (bool(_DIGIT.search(lower)) and bool(_TIME_NUMBERS.search(lower)))
    )


def asks_time(query: str) -> bool:
    """Say whether the answer to a query is a time."""
    return bool(_ASKS_TIME.search(query))


def find_entities(text: str) -> tuple[str, ...]:
    """Return who and what a text names: people, places, addresses, files, tickets; lower case."""
    found: dict[str, None] = {}
    within = text[:ENTITY_CHARS]
    for mark, pattern in _ENTITIES:
        if not (mark in within if isinstance(mark, str) else mark.search(within)):
            continue
        for match in pattern.finditer(within):
            name = match[0].strip().rstrip(".,;:!?").lower().removesuffix("'s").removesuffix("’s")  # noqa: RUF001
            if mark == ".":  # what stands before the ending
                before = _FILE_NAME.search(within, max(0, match.start() - 60), match.start())
                if before is None:
                    continue
                name = f"{before[0]}{match[0]}".lower()
            if 1 < len(name) <= MAX_NAME_CHARS and name not in _CALENDAR:
                found[name] = None
            if len(found) == MAX_ENTITIES:
                return tuple(found)
    return tuple(found)
