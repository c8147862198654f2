"""The versions of core blocks: what a block held before, who wrote it and why, and how to go back.

Every text that a block held since its first access is kept, and none is ever changed or deleted.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from han_solo import BlockContext, tool
from han_solo.errors import UsageError

from ._blocks import ABOUT, MAX_VALUE_CHARS, Written, show_write, take_piece

if TYPE_CHECKING:
    from han_solo.blocks.model import VersionEntry

MAX_LIMIT: Final = 100


@dataclass(frozen=True, slots=True)
class BlockVersion:
    """One version of a block.

    ``origin``: seed (as the block was made), write, restored, adopted_outside (found in Letta,
    written around us), revert_repaired (put back, since Letta had gone back to an older version) or
    merged (an outside edit and what it had undone, joined). ``source_version`` is the version that
    it came of: the one restored, put back, or edited outside.
    """

    version: int
    label: str
    written_at: str
    author: str
    author_kind: str
    origin: str
    source_version: int | None
    reason: str
    chars: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BlockHistory:
    """Versions, newest first, without their texts. ``next_before`` is null on the last page."""

    summary: str
    versions: tuple[BlockVersion, ...]
    next_before: int | None


@dataclass(frozen=True, slots=True)
class BlockVersionText:
    """A version with its text, or a piece of it from ``offset_chars`` on."""

    summary: str
    about: str
    version: BlockVersion
    offset_chars: int
    value: str
    next_offset_chars: int | None


@tool(effect="read")
async def list_block_versions(
    ctx: BlockContext, label: str, limit: int = 20, before: int | None = None
) -> BlockHistory:
    """List the versions of one core block, newest first: who wrote each, when and why.

    Use it when a block does not hold what it should, or to find the version to go back to.

    Args:
        label: the block's label, such as pending_thoughts; one that the agent no longer has works.
        limit: how many, 1 to 100. Fewer come when the reply would grow too long.
        before: only versions older than this number; next_before of the reply before.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"The limit {limit} is out of range.", hint=f"Use 1 to {MAX_LIMIT}.")
    entries = await ctx.blocks.history(label, limit=limit + 1, before=before)
    shown = [_show(entry) for entry in entries[:limit]]
    shown = shown[: _count_that_fit(shown)]
    rest = shown[-1].version if shown and len(shown) < len(entries) else None
    more = f"more follow: call again with before={rest}" if rest else "that is all"
    found = f"{len(shown) or 'no'} version{'' if len(shown) == 1 else 's'} of {label}"
    return BlockHistory(f"{found}; {more}.", tuple(shown), rest)


@tool(effect="read")
async def read_block_version(
    ctx: BlockContext, label: str, version: int, offset_chars: int = 0
) -> BlockVersionText:
    """Read what a core block held at one version.

    Args:
        label: the block's label, such as pending_thoughts.
        version: the version's number, as list_block_versions shows it.
        offset_chars: where to begin in a long text, as next_offset_chars of the reply before said.
    """
    found = await ctx.blocks.version(label, version)
    value, offset, rest = take_piece(found.value, offset_chars, MAX_VALUE_CHARS)
    more = f"; more follows: call again with offset_chars={rest}" if rest is not None else ""
    return BlockVersionText(
        summary=f"Version {version} of {label}: {found.length:,} characters{more}.",
        about=ABOUT,
        version=_show(found),
        offset_chars=offset,
        value=value,
        next_offset_chars=rest,
    )


@tool(effect="write")
async def restore_block_version(
    ctx: BlockContext,
    label: str,
    version: int,
    reason: str = "",
    expected_version: int | None = None,
) -> Written:
    """Bring back what a core block held at an older version, and verify it.

    The old text is written as a new version, so nothing is lost and this can be undone the same
    way. Use it after a mistaken write. Compare the two first: read_block_version shows the old one.

    Args:
        label: the block's label, such as pending_thoughts.
        version: the number of the version to bring back.
        reason: why, in a sentence of at most 500 characters, for the block's history.
        expected_version: the newest version that you saw; refused if it is another by now.
    """
    return show_write(
        await ctx.blocks.restore(label, version, reason=reason, expected_version=expected_version)
    )


def _show(entry: VersionEntry) -> BlockVersion:
    return BlockVersion(
        version=entry.number,
        label=entry.label,
        written_at=entry.created_at.isoformat(timespec="seconds"),
        author=entry.author,
        author_kind=entry.author_kind,
        origin=entry.origin,
        source_version=entry.source,
        reason=entry.reason,
        chars=entry.length,
        sha256=entry.sha256,
    )


def _count_that_fit(versions: list[BlockVersion]) -> int:
    """Return how many of them one reply holds; the first always fits."""
    room = MAX_VALUE_CHARS
    for count, version in enumerate(versions):
        room -= len(json.dumps(asdict(version), ensure_ascii=False))
        if room < 0:
            return max(count, 1)
    return len(versions)
