"""The guard against instructions that were inverted or went missing."""

from __future__ import annotations

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.reconcile.text_rules import TextRules

from ._blocks import find_last

SYSTEM = "system prompt"


async def _restore(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    done: list[str] = []
    for finding in findings:
        block = context.spec.block(finding.key)
        if block is None:
            continue  # the system prompt: tool_drift puts a declared one back
        rules = block.rules
        last = await find_last(context, block.label, lambda version: rules.allow(version.value))  # noqa: B023 - awaited in this round
        if last is None:
            done.append(f"no version of {block.label} keeps the rules")
            continue
        written = await context.blocks_writer.restore(
            block.label, last.number, reason="The text broke the rules of the agent spec."
        )
        done.append(
            f"{block.label} was restored from version {last.number}, now version {written.version}"
        )
    return f"{'; '.join(done)}." if done else "Nothing could be restored."


@guard(every_s=300, incident="inverted-instructions", remedy=_restore)
async def block_rules(context: CheckContext) -> tuple[Finding, ...]:
    """Find blocks, and a system prompt, that break the rules in the spec.

    Rules are phrases that a text must or must not contain. The restore is for who asks for it
    (mode repair): a text that breaks a rule may hold other things that are new.
    """
    found: list[Finding] = []
    values = {state.label: state.value for state in await context.blocks()}
    for block in context.spec.blocks:
        if block.label in values:
            found.extend(_judge(block.label, values[block.label], block.rules))
    found.extend(_judge(SYSTEM, (await context.agent()).system, context.spec.system_rules))
    return tuple(found)


def _judge(label: str, text: str, rules: TextRules) -> tuple[Finding, ...]:
    missing, forbidden = rules.missing(text), rules.forbidden(text)
    if not missing and not forbidden:
        return ()
    faults = [f"it lacks {phrase!r}" for phrase in missing]
    faults += [f"it says {phrase!r}" for phrase in forbidden]
    where = f"The block {label!r}" if label != SYSTEM else "The system prompt"
    restore = f"han-solo blocks history {label}, then han-solo blocks restore {label} NUMBER"
    return (
        Finding(
            key=label,
            summary=f"{where} breaks the rules of the agent spec: {'; '.join(faults)}.",
            hint=f"In mode repair the last version that keeps them is restored; by hand: {restore}"
            if label != SYSTEM
            else "sync-tools puts a declared system prompt back.",
            severity="critical",
            detail={"missing": list(missing), "forbidden": list(forbidden)},
        ),
    )
