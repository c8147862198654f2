"""The guard that keeps the agent's tools, prompt and settings as declared."""

from __future__ import annotations

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.reconcile.plan import (
    AttachBlock,
    CreateBlock,
    DetachTool,
    PatchLlmConfig,
    Step,
    kind_of,
    target_of,
)

_WATCHED_BY_OTHERS = (PatchLlmConfig, AttachBlock, CreateBlock)
"""``reasoner_off``, ``context_window`` and ``model_settings``; ``block_presence``."""

_OTHER_FINDINGS = frozenset({"model_differs", "block_over_limit"})


def _is_ours(step: Step) -> bool:
    return not isinstance(step, _WATCHED_BY_OTHERS)


async def _apply(context: RemedyContext, _findings: tuple[Finding, ...]) -> str:
    outcome = await context.apply(_is_ours)
    done = [f"{kind_of(step)} {target_of(step)}" for step in outcome.plan.steps]
    if not done:
        return "There was nothing that a sync could do."
    return f"{len(done)} steps were taken and read back: {', '.join(done)}."


@guard(every_s=60, incident="tools-dropped", mode="repair", remedy=_apply)
async def tool_drift(context: CheckContext) -> tuple[Finding, ...]:
    """Find declared tools that are not attached, stale, doubled or another's; and other drift.

    It is the plan of a sync: what one would do, and what it could not do, such as a name that
    somebody else owns or a bridge that does not answer.
    """
    plan = await context.plan()
    found: list[Finding] = []
    if plan.refusal is not None:
        found.append(
            Finding(
                key=f"refused:{plan.refusal.reason}",
                summary=f"The tools can not be compared or put right: {plan.refusal.sentence}",
                hint=plan.refusal.hint,
                severity="critical",
            )
        )
    found.extend(_of_step(step) for step in plan.steps if _is_ours(step))
    found.extend(
        Finding(
            key=f"{conflict.kind}:{conflict.target}",
            summary=conflict.sentence,
            hint=conflict.hint,
        )
        for conflict in plan.conflicts
        if conflict.kind not in _OTHER_FINDINGS
    )
    return tuple(found)


def _of_step(step: Step) -> Finding:
    assert not isinstance(step, DetachTool), "a plan without consent detaches nothing"
    kind, target = kind_of(step), target_of(step)
    return Finding(
        key=f"{kind}:{target}",
        summary=f"{target} is not as declared: a sync would {kind.replace('_', ' ')}.",
        hint="In mode repair the plan is applied; by hand: sync-tools.",
        detail={"step": kind, "target": target},
    )
