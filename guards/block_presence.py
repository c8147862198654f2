"""The guard against core blocks that are gone or empty."""

from __future__ import annotations

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.blocks.model import BlockState, Version
from han_solo.errors import BlockRefused, PlanRefused
from han_solo.reconcile.plan import AttachBlock, CreateBlock

from ._blocks import find_last, has_text, load_entries, restore


async def _bring_back(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    by_state: dict[object, list[str]] = {}
    for finding in findings:
        by_state.setdefault(finding.detail["state"], []).append(finding.key)
    missing, done = by_state.get("missing", []), []
    known = (await context.observed()).known.blocks
    if missing and (why_not := await _attach(context, len(missing))):
        done.append(f"no block could be attached ({why_not.rstrip('.')})")
    present = {state.label: state for state in await context.blocks()}
    attached = [label for label in missing if label in present]
    again = [label for label in attached if present[label].view.id == known.get(label)]
    done += [f"{label} was attached again" for label in again]
    # A block that was attached again may be as empty as when it was taken off.
    for label in [*again, *by_state.get("emptied", [])]:
        state = present.get(label)
        last = await find_last(context, label, has_text)
        if state and not state.value.strip() and last:
            done.append(await restore(context, last, "The block was found empty."))
    anew = [label for label in attached if label not in again]
    done += [await _fill_anew(context, label) for label in [*anew, *by_state.get("made_anew", [])]]
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


async def _fill_anew(context: RemedyContext, label: str) -> str:
    former = await _find_former(context, label)
    if former is None:
        return f"{label} was made from its seed"
    why = f"Version {former.number} of {former.block_id}, which the agent no longer has."
    return f"{label} was made anew; {await _write(context, label, former.value, why)}"


async def _write(context: RemedyContext, label: str, text: str, why: str) -> str:
    try:
        written = await context.blocks_writer.write(label, text, reason=why)
    except BlockRefused as refused:
        return f"{label} was not written ({refused.message.rstrip('.')})"
    return f"{label} was written as version {written.version} ({why.rstrip('.')})"


@guard(every_s=60, incident="empty-block", mode="repair", remedy=_bring_back)
async def block_presence(context: CheckContext) -> tuple[Finding, ...]:
    """Find a declared block that is not attached, or that lost what it held.

    It lost it when it is empty, or when another block was made in its place and holds the seed. An
    empty block that has no seed and never held anything is no finding. One that somebody emptied
    through us is reported and not refilled: that was meant.
    """
    found: list[Finding] = []
    present = {state.label: state for state in await context.blocks()}
    spec = context.spec
    is_promised = not spec.is_shipped or spec.tag in (await context.agent()).tags
    for block in spec.blocks:
        state = present.get(block.label)
        if state is None:
            found += [_missing(block.label)] if is_promised else []
        elif (lost := await _judge_made_anew(context, state)) or (
            not state.value.strip() and (lost := await _judge_empty(context, block.label))
        ):
            found.append(lost)
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


async def _judge_made_anew(context: CheckContext, state: BlockState) -> Finding | None:
    """Say what is to be said of a block that is like new, where another one held more."""
    is_fresh = state.version in {None, 1} and state.value in {"", _seed_of(context, state.label)}
    former = await _find_former(context, state.label) if is_fresh else None
    if former is None or former.value == state.value:
        return None
    if len(await load_entries(context, state.label, limit=2)) > 1:
        return None  # it was written, so that it is like new now is its own history
    return Finding(
        key=state.label,
        summary=f"The block {state.label!r} was made anew, and what the agent had under that label "
        "in another block is not in it.",
        hint=f"In mode repair it gets version {former.number} of the other block, whose history is "
        "kept.",
        severity="critical",
        detail={
            "state": "made_anew",
            "former_block": former.block_id,
            "former_version": former.number,
        },
    )


async def _find_former(context: CheckContext, label: str) -> Version | None:
    attached = [state.view.id for state in await context.blocks()]
    return await context.block_history.former(label, attached)


async def _judge_empty(context: CheckContext, label: str) -> Finding | None:
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
