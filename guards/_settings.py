"""What the guards of the model's settings share: the remedy, and what Letta has for a field."""

from __future__ import annotations

from han_solo import Finding, RemedyContext
from han_solo.reconcile.plan import PatchLlmConfig


async def put_settings_back(context: RemedyContext, _findings: tuple[Finding, ...]) -> str:
    """Put all declared settings back in one PATCH of ``llm_config`` alone."""
    outcome = await context.apply(lambda step: isinstance(step, PatchLlmConfig))
    changed = [
        f"{name} to {value}"
        for step in outcome.plan.steps
        if isinstance(step, PatchLlmConfig)
        for name, value in sorted(step.changes.items())
    ]
    if not changed:
        return "They were as declared again before anything was done."
    return f"Put back in llm_config alone, and read back: {', '.join(changed)}."
