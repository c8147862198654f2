"""The guard against core blocks that are gone or empty."""

from __future__ import annotations

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.reconcile.plan import AttachBlock, CreateBlock

from ._blocks import find_last, was_emptied_through_us


async def _bring_back(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    done: list[str] = []
    if any(finding.detail["state"] == "missing" for finding in findings):
        outcome = await context.apply(lambda step: isinstance(step, AttachBlock | CreateBlock))
        for step in outcome.plan.steps:
            if isinstance(step, AttachBlock):
                done.append(f"{step.label} was attached again")
            elif isinstance(step, CreateBlock):
                done.append(f"{step.label} was made anew from its seed")
    for state in await context.blocks():
        if state.value.strip() or context.spec.block(state.label) is None:
            continue
        last = await find_last(context, state.label, lambda version: bool(version.value.strip()))
        if last is None or await was_emptied_through_us(context, state.label):
            continue
        written = await context.blocks_writer.restore(
            state.label, last.number, reason="The block was found empty."
        )
        done.append(
            f"{state.label} was restored from version {last.number}, now version {written.version}"
        )
    return f"{'; '.join(done)}." if done else "Nothing could be brought back."


@guard(every_s=60, incident="empty-block", mode="repair", remedy=_bring_back)
async def block_presence(context: CheckContext) -> tuple[Finding, ...]:
    """Find a declared block that is not attached, or that is empty although it held something.

    A block that somebody emptied through us is reported and not refilled: that was meant.
    """
    found: list[Finding] = []
    present = {state.label: state for state in await context.blocks()}
    for block in context.spec.blocks:
        state = present.get(block.label)
        if state is None:
            found.append(
                Finding(
                    key=block.label,
                    summary=f"The declared block {block.label!r} is not attached to the agent.",
                    hint="In mode repair the block it had is attached again, with what it holds; "
                    "by hand: sync-tools.",
                    severity="critical",
                    detail={"state": "missing"},
                )
            )
        elif not state.value.strip() and (finding := await _judge_empty(context, block.label)):
            found.append(finding)
    return tuple(found)


async def _judge_empty(context: CheckContext, label: str) -> Finding | None:
    last = await find_last(context, label, lambda version: bool(version.value.strip()))
    seed = context.spec.block(label)
    if last is None and not (seed and seed.seed.strip()):
        return None  # it never held anything
    is_meant = await was_emptied_through_us(context, label)
    if last is None:
        hint = f"Write it: han-solo blocks edit {label}"
    elif is_meant:
        hint = (
            "It was emptied through us, so it is left as it is; to have it back: "
            f"han-solo blocks restore {label} {last.number}"
        )
    else:
        hint = (
            f"In mode repair version {last.number} is restored; by hand: "
            f"han-solo blocks restore {label} {last.number}"
        )
    return Finding(
        key=label,
        summary=f"The block {label!r} is empty, so the agent works without what it should say.",
        hint=hint,
        severity="warning" if is_meant else "critical",
        detail={"state": "empty", "last_version": last.number if last else None},
    )
