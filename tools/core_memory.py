"""The core memory tools: read the agent's core blocks, and change them with verified writes.

What a block holds stands in a reply as the field ``value`` beside its label: it is data, whoever
wrote it. A long value comes in pieces, since replies are bounded and nothing is ever cut silently.
"""

from __future__ import annotations

from han_solo import BlockContext, tool

from ._blocks import CoreMemory, Written, show_all, show_one, show_write


@tool(effect="read")
async def read_core_memory(
    ctx: BlockContext, label: str | None = None, offset_chars: int = 0
) -> CoreMemory:
    """Read core memory as it is stored now: one block, or all of them.

    Use it before you write a block, and when the copy in your context may be old: blocks that
    changed during this turn show up in your context on the next one only. Do not use it to look
    for something that happened; that is a search.

    Args:
        label: the block's label, such as pending_thoughts; leave it out for all blocks.
        offset_chars: where to begin in a long block, as next_offset_chars of the reply before said;
            only together with a label.
    """
    if label is not None:
        return show_one(await ctx.blocks.read(label), offset_chars)
    return show_all(await ctx.blocks.list())


@tool(effect="write")
async def write_core_memory(
    ctx: BlockContext,
    label: str,
    value: str,
    reason: str = "",
    expected_version: int | None = None,
) -> Written:
    """Replace the whole value of one core block, verify it, and keep it as a version.

    Use it when what is always in your view has to change as a whole. The value replaces the old one
    entirely: read the block first and keep what still holds. To add a line use block_append, to
    change a passage block_replace. The reply comes after the block was read back; an error says
    what is known, and never counts as written. Do not use it for things to be found by search
    later, nor for a passing reminder (that is a notecard).

    Args:
        label: the label of an existing block, such as pending_thoughts.
        value: the complete new text, at most the block's limit (read_core_memory shows it). Longer
            text is refused, not cut.
        reason: why, in a sentence of at most 500 characters, for the block's history.
        expected_version: the version that you read; the write is refused if it is another by now.
    """
    return show_write(
        await ctx.blocks.write(label, value, reason=reason, expected_version=expected_version)
    )


@tool(effect="write")
async def write_own_block(
    ctx: BlockContext,
    label: str,
    value: str,
    reason: str = "",
    expected_version: int | None = None,
) -> Written:
    """Replace the whole value of one of the agent's own blocks, and verify it.

    The agent's own blocks are those that name the agent among their writers (read_core_memory shows
    them), such as pending_thoughts and the portraits. Any other block is refused, whoever calls, so
    this is the safe choice when only the agent's own memory is to change. Otherwise it works as
    write_core_memory does.

    Args:
        label: the label of a block that has agent among its writers.
        value: the complete new text, at most the block's limit. Longer text is refused, not cut.
        reason: why, in a sentence of at most 500 characters, for the block's history.
        expected_version: the version that you read; the write is refused if it is another by now.
    """
    ctx.blocks.require_agents_own(label)
    return show_write(
        await ctx.blocks.write(label, value, reason=reason, expected_version=expected_version)
    )


@tool(effect="write")
async def block_append(ctx: BlockContext, label: str, text: str, reason: str = "") -> Written:
    """Add text at the end of a core block, on a line of its own, and verify it.

    Use it to add an entry to a list or a log: nothing that stands there is touched, and what others
    add at the same moment is kept too. Do not repeat it after an error that says it is not known
    whether the write landed: read the block first.

    Args:
        label: the label of an existing block, such as open_threads.
        text: what to add; the whole block may not grow beyond its limit.
        reason: why, in a sentence of at most 500 characters, for the block's history.
    """
    return show_write(await ctx.blocks.append(label, text, reason=reason))


@tool(effect="write")
async def block_replace(
    ctx: BlockContext, label: str, old_text: str, new_text: str, reason: str = ""
) -> Written:
    """Replace one passage of a core block, and verify it.

    Use it to correct or remove something and leave the rest alone. The old text must stand in the
    block exactly once, to the character; otherwise nothing is written and the reply says how often
    it was found.

    Args:
        label: the label of an existing block, such as open_threads.
        old_text: the passage as it stands there, with enough around it to be the only one.
        new_text: what comes in its place; empty to remove it.
        reason: why, in a sentence of at most 500 characters, for the block's history.
    """
    return show_write(await ctx.blocks.replace(label, old_text, new_text, reason=reason))
