"""The guard against instructions that were inverted or went missing."""

from __future__ import annotations

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.blocks.model import Version
from han_solo.reconcile.plan import PatchSystem
from han_solo.reconcile.text_rules import TextRules

from ._blocks import find_last, restore

SYSTEM = "system prompt"


async def _restore(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    done: list[str] = []
    for finding in findings:
        if finding.key == SYSTEM:
            done.append(await _put_prompt_back(context))
            continue
        version = await _find_kept(context, finding.key)
        if version is None:
            done.append(f"no version of {finding.key} keeps the rules")
        else:
            done.append(
                await restore(context, version, "The text broke the rules of the agent spec.")
            )
    return f"{'; '.join(done)}."


async def _put_prompt_back(context: RemedyContext) -> str:
    outcome = await context.apply(lambda step: isinstance(step, PatchSystem))
    if outcome.plan.steps:
        return "the declared system prompt was put back"
    return "the system prompt was left as it is, since the spec declares none for this agent"


async def _find_kept(context: CheckContext, label: str) -> Version | None:
    block = context.spec.block(label)
    if block is None:
        return None
    rules = block.rules
    return await find_last(context, label, lambda version: rules.allow(version.value))


@guard(every_s=300, incident="inverted-instructions", remedy=_restore)
async def block_rules(context: CheckContext) -> tuple[Finding, ...]:
    """Find blocks, and a system prompt, that break the rules in the spec.

    Rules are phrases that a text must or must not contain. The restore is for who asks for it
    (mode repair): a text that breaks a rule may hold other things that are new.
    """
    found: list[Finding] = []
    values = {state.label: state.value for state in await context.blocks()}
    for block in context.spec.blocks:
        text = values.get(block.label, "")
        # Of an empty block block_presence tells; that it lacks each of its phrases adds nothing.
        if text.strip() and (faults := _list_faults(block.rules, text)):
            kept = await _find_kept(context, block.label)
            found.append(_build(block.label, f"The block {block.label!r}", faults, _advise(kept)))
    system = (await context.agent()).system
    if faults := _list_faults(context.spec.system_rules, system):
        advice = (
            "sync-tools puts the declared system prompt back; so does mode repair."
            if context.spec.system is not None
            else "The spec declares no system prompt: mend it in Letta, or declare one."
        )
        found.append(_build(SYSTEM, "The system prompt", faults, advice))
    return tuple(found)


def _list_faults(rules: TextRules, text: str) -> dict[str, tuple[str, ...]]:
    faults = {"missing": rules.missing(text), "forbidden": rules.forbidden(text)}
    return faults if any(faults.values()) else {}


def _advise(kept: Version | None) -> str:
    if kept is None:
        return "No version of it keeps the rules: write it anew with han-solo blocks edit."
    return (
        f"Version {kept.number} is the last that keeps them: han-solo blocks diff {kept.label} "
        f"{kept.number}, then han-solo blocks restore {kept.label} {kept.number}; mode repair "
        "restores it by itself."
    )


def _build(key: str, where: str, faults: dict[str, tuple[str, ...]], advice: str) -> Finding:
    words = [f"it lacks {phrase!r}" for phrase in faults["missing"]]
    words += [f"it says {phrase!r}" for phrase in faults["forbidden"]]
    return Finding(
        key=key,
        summary=f"{where} breaks the rules of the agent spec: {'; '.join(words)}.",
        hint=advice,
        severity="critical",
        detail={kind: list(phrases) for kind, phrases in faults.items()},
    )
