"""Core memory under the names that other clients know: one tool with actions, and Letta's two.

Not in the agent's own set: Letta overwrites tools of its built-in names at every start, and its own
revert our writes. Clients such as Claude Code are served them by the bridge, which verifies each.
"""

from __future__ import annotations

from typing import Literal

from han_solo import BlockContext, tool
from han_solo.errors import UsageError

from ._blocks import CoreMemory, Written, outline, show_all, show_one, show_write


@tool(effect="write", audience="client")
async def core_memory(
    ctx: BlockContext,
    action: Literal["read", "list", "write", "append", "replace"],
    label: str | None = None,
    value: str | None = None,
    *,
    old_text: str | None = None,
    reason: str = "",
    expected_version: int | None = None,
    offset_chars: int = 0,
) -> CoreMemory | Written:
    """Read or change the agent's core blocks, which are in every one of its prompts.

    Every write is read back before it is reported, and kept as a version. Who may write a block is
    declared in the agent spec; list shows it.

    Args:
        action: read shows a block, or all without a label; list shows all blocks without their
            values; write replaces a whole block; append adds a line at its end; replace changes one
            passage that occurs exactly once.
        label: the block's label; needed by all actions but read and list.
        value: the new text, for write, append and replace. Text over the block's limit is refused.
        old_text: for replace: the passage to be replaced, as it stands there.
        reason: why, in a sentence of at most 500 characters, for the block's history.
        expected_version: refuse a write if the block is at another version by now.
        offset_chars: for read: where to begin in a long block.
    """
    if action == "list":
        return outline(await ctx.blocks.list())
    if action == "read":
        if label is None:
            return show_all(await ctx.blocks.list())
        return show_one(await ctx.blocks.read(label), offset_chars)
    needed = _require(action, "label", label)
    text = _require(action, "value", value)
    if action == "write":
        written = await ctx.blocks.write(
            needed, text, reason=reason, expected_version=expected_version
        )
    elif action == "append":
        written = await ctx.blocks.append(
            needed, text, reason=reason, expected_version=expected_version
        )
    else:
        old = _require(action, "old_text", old_text)
        written = await ctx.blocks.replace(
            needed, old, text, reason=reason, expected_version=expected_version
        )
    return show_write(written)


@tool(effect="write", audience="client")
async def core_memory_append(ctx: BlockContext, label: str, content: str) -> Written:
    """Add text at the end of one of the agent's core blocks, on a line of its own, and verify it.

    Args:
        label: the block's label, such as open_threads.
        content: what to add; the whole block may not grow beyond its limit.
    """
    return show_write(await ctx.blocks.append(label, content))


@tool(effect="write", audience="client")
async def core_memory_replace(
    ctx: BlockContext, label: str, old_content: str, new_content: str
) -> Written:
    """Replace one passage of one of the agent's core blocks, and verify it.

    Args:
        label: the block's label, such as open_threads.
        old_content: the passage as it stands there; it must occur exactly once.
        new_content: what comes in its place; empty to remove the passage.
    """
    return show_write(await ctx.blocks.replace(label, old_content, new_content))


def _require(action: str, name: str, given: str | None) -> str:
    if given is None:
        raise UsageError(
            f"core_memory needs {name} for the action {action}.", hint="Nothing was written."
        )
    return given
