"""What the guards of core blocks share: the last version of a block that is good for something."""

from __future__ import annotations

from collections.abc import Callable

from han_solo import CheckContext, RemedyContext
from han_solo.blocks.model import Version, VersionEntry
from han_solo.errors import BlockRefused

_PAGE = 50
_PAGES = 20
"""A thousand versions back; what was good earlier than that is no longer what was lost."""


async def find_last(
    context: CheckContext, label: str, is_good: Callable[[Version], bool]
) -> Version | None:
    """Return the newest version of a block that is good, or None.

    Of a block that is gone the versions are found too, by the label that it had.
    """
    before: int | None = None
    for _ in range(_PAGES):
        entries = await load_entries(context, label, limit=_PAGE, before=before)
        for entry in entries:
            if entry.length and is_good(
                version := await context.block_history.version(label, entry.number)
            ):
                return version
        if len(entries) < _PAGE:
            return None
        before = entries[-1].number
    return None


async def load_entries(
    context: CheckContext, label: str, *, limit: int = _PAGE, before: int | None = None
) -> tuple[VersionEntry, ...]:
    """Return a block's versions, newest first; none of a label that never was written."""
    try:
        return await context.block_history.history(label, limit=limit, before=before)
    except BlockRefused as refused:
        if refused.reason != "unknown_label":
            raise
        return ()


async def restore(context: RemedyContext, version: Version, why: str) -> str:
    """Write an older version again, as a new one; return what came of it, in part of a sentence."""
    label, number = version.label, version.number
    try:
        written = await context.blocks_writer.restore(label, number, reason=why)
    except BlockRefused as refused:
        return f"{label} was left as it is ({refused.message.rstrip('.')})"
    return f"{label} was restored from version {number}, now version {written.version}"


def has_text(version: Version) -> bool:
    return bool(version.value.strip())
