"""The guard that notices what was written into a block around us."""

from __future__ import annotations

from han_solo import CheckContext, Finding, RemedyContext, guard

from ._blocks import load_newest


async def _adopt(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    sentences = [
        event.sentence
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
    found: list[Finding] = []
    for state in await context.blocks():
        if state.version is not None:
            continue
        newest = await load_newest(context, state.label)
        recorded = f"version {newest.number}" if newest else "nothing, since it was never recorded"
        found.append(
            Finding(
                key=state.label,
                summary=f"The block {state.label!r} does not hold what is recorded ({recorded}).",
                hint="In mode repair what is there becomes a version; by hand: "
                f"han-solo blocks inspect {state.label}",
                detail={
                    "length": state.length,
                    "sha256": state.sha256,
                    "last_version": newest.number if newest else None,
                },
            )
        )
    return tuple(found)
