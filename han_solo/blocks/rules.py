"""What is refused, by name and before anything is written, and what edits make of a text. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..errors import BlockRefused, UsageError
from ..letta.text import require_storable
from ..letta.views import AgentView, BlockView
from .facts import Facts
from .model import Author, Rights

MAX_REASON_CHARS: Final = 500
"""A sentence or two; the text itself is in the version."""


def find(agent: AgentView, label: str) -> BlockView:
    """Return the agent's block of that label."""
    block = agent.block(label)
    if block is None:
        known = ", ".join(sorted(block.label for block in agent.blocks)) or "none at all"
        raise BlockRefused(
            f"The agent {agent.name} has no core block {label!r}.",
            reason="unknown_label",
            hint=f"It has: {known}.",
        )
    return block


def require_reason(reason: str) -> None:
    require_storable(reason, "The reason")
    if len(reason) > MAX_REASON_CHARS:
        raise UsageError(
            f"The reason has {len(reason):,} characters; at most {MAX_REASON_CHARS} are kept.",
            hint="Say it in a sentence; nothing was written.",
        )


def require_writer(label: str, author: Author, rights: Rights) -> None:
    """Refuse an author whom the agent spec does not let write the block."""
    if not rights.may_write(author, label):
        who = author.name if author.kind == "job" else author.kind
        writers = rights.writers_of(label)
        raise BlockRefused(
            f"The core block {label!r} is written by {' and '.join(writers) or 'nobody'} only, "
            f"not by {who}.",
            reason="not_a_writer",
            hint="Nothing was written. The agent spec says who may (writers).",
        )


def require_lasting(agent: Facts, block: BlockView, *, allow_builtins: bool) -> None:
    """Refuse a write that would be reverted, or that the block is not meant for."""
    if agent.builtins and not allow_builtins:
        raise BlockRefused(
            f"The agent {agent.name} holds Letta's own memory tools "
            f"({', '.join(agent.builtins)}), which write old values of every block back and would "
            "revert this write.",
            reason="builtin_memory_tools",
            hint="Run sync-tools, which offers to detach them.",
        )
    if block.read_only:
        raise BlockRefused(
            f"The core block {block.label!r} is read-only.",
            reason="read_only",
            hint="Change read_only in the agent spec and run sync-tools.",
        )


def require_version(label: str, number: int, expected: int | None) -> None:
    """Refuse a write that was made on another version."""
    if expected is not None and expected != number:
        raise BlockRefused(
            f"The core block {label!r} is at version {number}, not at version {expected} as "
            "expected.",
            reason="version_conflict",
            hint="Nothing was written. Read it again, and write with the version it has now.",
        )


def require_room(block: BlockView, value: str) -> None:
    """Refuse a text over the block's limit, which Letta does not enforce."""
    if len(value) > block.limit:
        raise BlockRefused(
            f"The value for the core block {block.label!r} has {len(value):,} characters, "
            f"{len(value) - block.limit:,} more than its limit of {block.limit:,}.",
            reason="over_limit",
            hint="Shorten it; nothing was written.",
        )


def appending(label: str, text: str) -> Callable[[str], str]:
    """Return the edit that adds a text on a line of its own."""
    if not text:
        raise UsageError(
            f"There is nothing to append to the core block {label!r}.", hint="Give it some text."
        )

    def edit(value: str) -> str:
        return f"{value}{text}" if not value or value.endswith("\n") else f"{value}\n{text}"

    return edit


def replacing(label: str, old: str, new: str) -> Callable[[str], str]:
    """Return the edit that replaces a passage which occurs exactly once."""
    if not old:
        raise UsageError(
            f"No text to be replaced in the core block {label!r} is given.",
            hint="Give the old text word for word; to add text, append it.",
        )

    def edit(value: str) -> str:
        count = _count(value, old)
        if count != 1:
            hint = "Read the block and give the old text as it stands there, to the character."
            if count:
                hint = "Give more of the text around it, so that it is the only place."
            raise BlockRefused(
                f"The old text occurs {count:,} times in the core block {label!r}, not exactly "
                "once.",
                reason="not_exactly_once",
                hint=f"{hint} Nothing was written.",
            )
        return value.replace(old, new)

    return edit


def _count(value: str, old: str) -> int:
    """Count the places where a text begins, overlapping ones too: each could be meant."""
    count, position = 0, value.find(old)
    while position >= 0:
        count, position = count + 1, value.find(old, position + 1)
    return count
