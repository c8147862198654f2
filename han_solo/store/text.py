"""Refuse text that Postgres and Letta can not hold, by name and place, before anything is written.

Postgres has no NUL in ``text``; a lone surrogate has no UTF-8. (Letta strips the first silently and
answers 500 to the second.)
"""

from __future__ import annotations

import re
from typing import Final

from ..errors import UsageError

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def require_storable(text: str, field: str, *, max_chars: int, min_chars: int = 1) -> str:
    """Return the text unchanged.

    Args:
        text: what is to be stored, kept to the character.
        field: what it is, for the error: ``The notecard's text``.
        max_chars: code points, at most.
        min_chars: code points, at least; with 1 or more, blanks alone count as none.

    Raises:
        UsageError: too long, too short, or with a NUL or a lone surrogate in it.
    """
    if len(text) > max_chars:
        raise UsageError(
            f"{field} has {len(text):,} characters; at most {max_chars:,} are kept.",
            hint="Shorten it, or split it in several; nothing was written.",
        )
    if len(text) < min_chars or (min_chars and not text.strip()):
        raise UsageError(f"{field} is empty.", hint="Give it some words; nothing was written.")
    position = text.find("\0")
    if position >= 0:
        raise UsageError(
            f"{field} has a NUL character (U+0000) at position {position + 1}.",
            hint="Take it out; nothing was written.",
        )
    found = _LONE_SURROGATE.search(text)
    if found:
        raise UsageError(
            f"{field} has a lone surrogate (U+{ord(found[0]):04X}) at position "
            f"{found.start() + 1}, which is half of a character.",
            hint="Send the whole character, or take it out; nothing was written.",
        )
    return text
