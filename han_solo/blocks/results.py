"""What the calls on a core block answer with, and how a write that was overwritten is judged."""

from __future__ import annotations

from ..errors import WriteNotVerified
from ..letta.views import BlockView
from .model import BlockWrite, Event, Inspection, digest
from .operation import Operation
from .records import Head
from .rounds import Look


def written(
    block: BlockView, value: str, version: int, operation: Operation, *, changed: bool
) -> BlockWrite:
    return BlockWrite(
        label=block.label,
        block_id=block.id,
        version=version,
        changed=changed,
        sha256=digest(value),
        length=len(value),
        limit=block.limit,
        events=tuple(operation.events),
    )


def overwritten(look: Look, operation: Operation) -> BlockWrite:
    """Judge a write that landed and was overwritten at once, now that all is settled."""
    assert operation.goal is not None
    assert look.head is not None
    number, text = operation.goal
    label = look.block.label
    if look.block.value == text.value:  # a revert, which was put right
        return written(look.block, text.value, look.head.number, operation, changed=True)
    raise WriteNotVerified(
        f"The core block {label!r} was written as version {number}, and somebody outside "
        f"wrote over it at once: version {look.head.number} is what it holds.",
        expected_sha256=text.sha256,
        found_sha256=look.head.sha256,
        hint="Both are in its history. Read the block before you write it again.",
    )


def inspected(block: BlockView, head: Head, events: tuple[Event, ...]) -> Inspection:
    return Inspection(
        label=block.label,
        block_id=block.id,
        version=head.number,
        sha256=head.sha256,
        length=len(block.value),
        limit=block.limit,
        events=events,
    )
