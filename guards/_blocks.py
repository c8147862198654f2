"""What the guards of core blocks share: the last version of a block that is good for something."""

from __future__ import annotations

from collections.abc import Callable

from han_solo import CheckContext
from han_solo.blocks.model import Version, VersionEntry

_PAGE = 50
_PAGES = 20
"""A thousand versions back; what was good earlier than that is no longer what was lost."""


async def find_last(
    context: CheckContext, label: str, is_good: Callable[[Version], bool]
) -> Version | None:
    """Return the newest version of a block that is good, or None."""
    before: int | None = None
    for _ in range(_PAGES):
        entries = await context.block_history.history(label, limit=_PAGE, before=before)
        for entry in entries:
            if entry.length and is_good(
                version := await context.block_history.version(label, entry.number)
            ):
                return version
        if len(entries) < _PAGE:
            return None
        before = entries[-1].number
    return None


async def load_newest(context: CheckContext, label: str) -> VersionEntry | None:
    """Return the newest version of a block, without its text."""
    entries = await context.block_history.history(label, limit=1)
    return entries[0] if entries else None


async def was_emptied_through_us(context: CheckContext, label: str) -> bool:
    """Say whether the newest version is empty, and somebody who may write the block wrote it."""
    newest = await load_newest(context, label)
    if newest is None or newest.origin not in {"write", "restored"}:
        return False
    version = await context.block_history.version(label, newest.number)
    return not version.value.strip()
