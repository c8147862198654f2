"""The guard against a reasoner that somebody, or a model switch, turned on."""

from __future__ import annotations

from han_solo import CheckContext, Finding, guard

from ._settings import put_settings_back


@guard(every_s=60, incident="silent-switch", mode="repair", remedy=put_settings_back)
async def reasoner_off(context: CheckContext) -> tuple[Finding, ...]:
    """Find an agent whose ``enable_reasoner`` is not what the spec declares.

    With 0 reasoning tokens the agent may go mute without any error, so that is critical.
    """
    declared = (await context.model()).enable_reasoner
    config = (await context.agent()).llm_config
    found = bool(config.get("enable_reasoner"))
    if found == declared:
        return ()
    tokens = config.get("max_reasoning_tokens")
    return (
        Finding(
            key="enable_reasoner",
            summary=f"enable_reasoner is {found} in Letta and {declared} in the spec, with "
            f"max_reasoning_tokens {tokens} and the model {config.get('handle')}.",
            hint="In mode repair the declared settings are put back; by hand: sync-tools.",
            severity="critical" if found and not tokens else "warning",
            detail={
                "enable_reasoner": found,
                "max_reasoning_tokens": tokens,
                "handle": config.get("handle"),
            },
        ),
    )
