"""The guard that notices what was written into a block around us."""

from __future__ import annotations

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.blocks.model import BlockState

from ._blocks import load_entries


async def _adopt(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    sentences = [
        f"{finding.key}: {event.sentence}"
        for finding in findings
        for inspection in await context.blocks_writer.inspect(finding.key)
        for event in inspection.events
    ]
    return " ".join(sentences) or "They were as recorded again before anything was done."


@guard(every_s=60, incident="block-writes-reverted", mode="repair", remedy=_adopt)
async def block_outside_edit(context: CheckContext) -> tuple[Finding, ...]:
    """Find blocks that do not hold their last version: somebody wrote around us.

    The remedy keeps what is there as a version with the author ``outside``; where Letta merely put
    an older text of ours back, the newer one is restored.
    """
    differing = [state for state in await context.blocks() if _differs(state)]
    if not differing:
        return ()
    # A block and its last version are read one after the other, and a write may come in between;
    # what differs in the same way twice was not that.
    again = {state.label: state for state in await context.block_history.list()}
    found = [
        await _describe(context, state)
        for state in differing
        if (second := again.get(state.label)) and _differs(second) and second.sha256 == state.sha256
    ]
    return tuple(finding for finding in found if finding)


def _differs(state: BlockState) -> bool:
    """Say whether it does; with a write of ours under way, that is how it should be."""
    return state.version is None and not state.is_open


async def _describe(context: CheckContext, state: BlockState) -> Finding | None:
    entries = await load_entries(context, state.label)
    if not entries:
        return None  # never recorded, so nobody wrote around us; it is kept from the next turn on
    newest = entries[0]
    older = next((entry.number for entry in entries if entry.sha256 == state.sha256), None)
    what = (
        f"holds its version {older} again, although version {newest.number} was the last"
        if older
        else f"holds a text that was written around us after version {newest.number}"
    )
    does = "the last version is put back" if older else "it becomes a version by `outside`"
    return Finding(
        key=state.label,
        summary=f"The block {state.label!r} {what}.",
        hint=f"In mode repair {does}; by hand: han-solo blocks show {state.label}",
        detail={
            "length": state.length,
            "sha256": state.sha256,
            "last_version": newest.number,
            "older_version": older,
        },
    )
