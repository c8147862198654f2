"""Whether the dream left what it should: read from the versions, not from what the agent says."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from han_solo.blocks.model import Version

from ._dream_prompt import BRIEF, PARTS

MIN_CHARS: Final = 80
"""Three headings with a sentence each are longer."""

SAME_FROM: Final = 0.95
"""From this share of equal text on, dates aside, a brief is a copy of the one before."""

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Written:
    """A block's versions since the dream began, the newest first, and the one before them."""

    label: str
    new: Sequence[Version]
    before: Version | None


def find_fault(day: str, written: Sequence[Written], allowed: Collection[str]) -> str | None:
    """Say in a sentence what is wrong with what was written; None when all is well.

    Args:
        day: the date that the brief is for.
        written: the blocks that have new versions.
        allowed: labels of the blocks that the dream may write.
    """
    outside = sorted(found.label for found in written if found.label not in allowed)
    if outside:
        return (
            f"The agent wrote {', '.join(outside)}, which the dream may not; "
            "`han-solo blocks history` shows what stood there before"
        )
    brief = next((found for found in written if found.label == BRIEF), None)
    if brief is None or not brief.new:
        return f"The agent wrote no new {BRIEF}"
    if brief.new[0].origin != "write":
        return f"The text of {BRIEF} was written around han-solo, unverified"
    return _judge(day, brief.new[0].value, brief.before.value if brief.before else "")


def _judge(day: str, text: str, before: str) -> str | None:
    if len(text.strip()) < MIN_CHARS:
        return f"The brief has {len(text.strip())} characters, too few to say anything"
    if day not in text:
        return f"The brief does not bear the date {day}"
    missing = [part for part in PARTS if part.casefold() not in text.casefold()]
    if missing:
        return f"The brief has no part {', '.join(missing)}"
    old, new = _DATE.sub("", before).split(), _DATE.sub("", text).split()
    if old and difflib.SequenceMatcher(None, old, new, autojunk=False).ratio() >= SAME_FROM:
        return "The brief is a copy of the one before it"
    return None
