"""The guard against a reasoner that somebody, or a model switch, turned on."""

from __future__ import annotations

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.reconcile.plan import PatchLlmConfig


async def _turn_off(context: RemedyContext, _findings: tuple[Finding, ...]) -> str:
    await context.apply(lambda step: isinstance(step, PatchLlmConfig))
    return "The declared model settings were put back with llm_config alone, and read back."


@guard(every_s=60, incident="silent-switch", mode="repair", remedy=_turn_off)
async def reasoner_off(context: CheckContext) -> tuple[Finding, ...]:
    """Find an agent whose ``enable_reasoner`` is not what the spec declares.

    With 0 reasoning tokens the agent may go mute without any error, so that is critical.
    """
    declared = context.spec.model.enable_reasoner
    config = (await context.agent()).llm_config
    found = config.get("enable_reasoner")
    if found == declared or (declared is False and not found):
        return ()
    tokens = config.get("max_reasoning_tokens")
    is_mute = bool(found) and not tokens
    return (
        Finding(
            key="enable_reasoner",
            summary=f"enable_reasoner is {found} in Letta and {declared} in the spec; "
            f"max_reasoning_tokens is {tokens}, the model {config.get('handle')}.",
            hint="In mode repair the declared settings are put back; by hand: sync-tools.",
            severity="critical" if is_mute else "warning",
            detail={
                "enable_reasoner": found,
                "max_reasoning_tokens": tokens,
                "handle": config.get("handle"),
            },
        ),
    )
