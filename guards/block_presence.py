"""The guard against core blocks that are gone or empty."""

from __future__ import annotations

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.blocks.model import Version
from han_solo.errors import BlockRefused, PlanRefused
from han_solo.reconcile.plan import AttachBlock, CreateBlock

from ._blocks import find_last, has_text, load_entries, restore


async def _bring_back(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    by_state: dict[object, list[str]] = {}
    for finding in findings:
        by_state.setdefault(finding.detail["state"], []).append(finding.key)
    missing, done = by_state.get("missing", []), []
    # By label, the versions of a block that is gone are found only until there is another one.
    lost = {label: await find_last(context, label, has_text) for label in missing}
    known = (await context.observed()).known.blocks
    if missing and (why_not := await _attach(context, len(missing))):
        done.append(f"no block could be attached ({why_not.rstrip('.')})")
    present = {state.label: state for state in await context.blocks()}
    for label in missing:
        if (state := present.get(label)) is None:
            continue
        if state.view.id == known.get(label):
            done.append(f"{label} was attached again")
        else:
            done.append(await _fill_anew(context, label, lost[label]))
    # A block that was attached again may be as empty as when it was taken off.
    for label in [*missing, *by_state.get("emptied", [])]:
        state = present.get(label)
        last = await find_last(context, label, has_text)
        if state and not state.value.strip() and last:
            done.append(await restore(context, last, "The block was found empty."))
    done += [
        await _write(context, label, _seed_of(context, label), "The spec's seed.")
        for label in by_state.get("never_filled", [])
    ]
    if left := by_state.get("emptied_through_us"):
        done.append(f"left as they are, since somebody meant it: {', '.join(left)}")
    return f"{'; '.join(done) or 'nothing was missing any more'}."


async def _attach(context: RemedyContext, most_gone: int) -> str | None:
    """Attach blocks, and make those anew that Letta no longer has; return why not.

    A plan is held back as a whole, as while the bridge is down; an empty block is mended all the
    same.
    """
    while True:
        try:
            await context.apply(lambda step: isinstance(step, AttachBlock | CreateBlock))
        except PlanRefused as refused:
            # The id of one that is gone is forgotten with this refusal; the next plan makes it.
            most_gone -= 1
            if refused.reason != "block_gone" or most_gone < 0:
                return refused.message
        else:
            return None


async def _fill_anew(context: RemedyContext, label: str, last: Version | None) -> str:
    if last is None:
        return f"{label} was made from its seed"
    why = f"Version {last.number} of {last.block_id}, which Letta no longer has."
    return f"{label} was made anew; {await _write(context, label, last.value, why)}"


async def _write(context: RemedyContext, label: str, text: str, why: str) -> str:
    try:
        written = await context.blocks_writer.write(label, text, reason=why)
    except BlockRefused as refused:
        return f"{label} was not written ({refused.message.rstrip('.')})"
    return f"{label} was written as version {written.version} ({why.rstrip('.')})"


@guard(every_s=60, incident="empty-block", mode="repair", remedy=_bring_back)
async def block_presence(context: CheckContext) -> tuple[Finding, ...]:
    """Find a declared block that is not attached, or that is empty although it should not be.

    An empty block that has no seed and never held anything is none. One that somebody emptied
    through us is reported and not refilled: that was meant.
    """
    found: list[Finding] = []
    present = {state.label: state for state in await context.blocks()}
    spec = context.spec
    is_promised = not spec.is_shipped or spec.tag in (await context.agent()).tags
    for block in spec.blocks:
        state = present.get(block.label)
        if state is None and is_promised:
            found.append(_missing(block.label))
        elif state and not state.value.strip() and (empty := await _judge(context, block.label)):
            found.append(empty)
    return tuple(found)


def _missing(label: str) -> Finding:
    return Finding(
        key=label,
        summary=f"The declared block {label!r} is not attached to the agent.",
        hint="In mode repair the block that it had is attached again, or made anew with its last "
        "text; by hand: sync-tools.",
        severity="critical",
        detail={"state": "missing"},
    )


async def _judge(context: CheckContext, label: str) -> Finding | None:
    """Say what is to be said of an empty block."""
    entries = await load_entries(context, label, limit=1)
    last = await find_last(context, label, has_text)
    if last is None:
        return _never_filled(label) if _seed_of(context, label).strip() else None
    newest = entries[0]
    # While the newest version still holds text, what emptied the block is not recorded yet.
    is_recorded = newest.number > last.number
    is_meant = is_recorded and newest.origin in {"write", "restored"}
    by_hand = f"han-solo blocks restore {label} {last.number}"
    who = f", by {newest.author} at {newest.created_at:%Y-%m-%d %H:%M} UTC" if is_recorded else ""
    return Finding(
        key=label,
        summary=f"The block {label!r} was emptied{who}; the agent works without what it said.",
        hint=f"It was done through us, so it is left as it is; to have the text back: {by_hand}"
        if is_meant
        else f"In mode repair version {last.number} is restored; by hand: {by_hand}",
        severity="warning" if is_meant else "critical",
        detail={
            "state": "emptied_through_us" if is_meant else "emptied",
            "last_version": last.number,
            "emptied_by": newest.author if is_recorded else None,
        },
    )


def _never_filled(label: str) -> Finding:
    return Finding(
        key=label,
        summary=f"The block {label!r} is empty, and as far as is known always was.",
        hint=f"In mode repair it gets the spec's seed; by hand: han-solo blocks edit {label}",
        severity="critical",
        detail={"state": "never_filled"},
    )


def _seed_of(context: CheckContext, label: str) -> str:
    block = context.spec.block(label)
    return block.seed if block else ""
