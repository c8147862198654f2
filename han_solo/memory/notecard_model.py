"""What a notecard is, how long its parts may be, and how a list of them is paged."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from ..errors import UsageError

Status = Literal["active", "completed", "archived"]
Source = Literal["chat", "manual"]
Filter = Literal["not_archived", "active", "completed", "archived", "all"]

MAX_TEXT_CHARS: Final = 4_000
"""Longer text belongs in a passage, where it is chunked and found by search."""

MAX_CREATOR_CHARS: Final = 64
MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 20

MAX_ID: Final = 2**63 - 1
_CURSOR: Final = re.compile(r"before-([1-9][0-9]{0,18})")

SOURCES: Final[tuple[Source, ...]] = ("chat", "manual")


@dataclass(frozen=True, slots=True)
class Notecard:
    """A notecard as it is stored. Times are aware UTC.

    ``creator`` is who it is from, as the writer said; ``principal`` is the authenticated caller
    that wrote it, and ``agent_id`` the agent it called for.
    """

    id: int
    text: str
    creator: str
    status: Status
    source: Source
    principal: str
    agent_id: str | None
    created_at: datetime
    status_changed_at: datetime
    status_changed_by: str


@dataclass(frozen=True, slots=True)
class Page:
    """Notecards, newest first; ``next_cursor`` is None on the last page."""

    notecards: tuple[Notecard, ...]
    next_cursor: str | None

    def keep(self, count: int) -> Page:
        """Return the page with its first ``count`` cards only, and the rest after its cursor."""
        if count >= len(self.notecards):
            return self
        return Page(self.notecards[:count], _cursor_after(self.notecards[count - 1]))


@dataclass(frozen=True, slots=True)
class Change:
    """What a change of status came to; ``changed`` is False when the card stood there already."""

    notecard: Notecard
    changed: bool


def _cursor_after(card: Notecard) -> str:
    """Return the cursor of the page that begins after this card."""
    return f"before-{card.id}"


def read_cursor(cursor: str | None) -> int:
    if cursor is None:
        return MAX_ID
    match = _CURSOR.fullmatch(cursor)
    if not match or int(match[1]) > MAX_ID:
        raise UsageError(
            f"{cursor[:40]!r} is not a cursor of this list.",
            hint="Give next_cursor of the reply before, or none for the newest.",
        )
    return int(match[1])
