"""The guard against a context window that shrank without a word."""

from __future__ import annotations

from han_solo import CheckContext, Finding, guard

from ._settings import put_settings_back


@guard(every_s=60, incident="silent-switch", mode="repair", remedy=put_settings_back)
async def context_window(context: CheckContext) -> tuple[Finding, ...]:
    """Find a context window that is smaller than the spec's; the memory is shortened by it."""
    model = await context.model()
    config = (await context.agent()).llm_config
    found = config.get("context_window")
    # The number was chosen for the spec's model: of another one it says nothing.
    if model.context_window is None or config.get("handle") != model.handle:
        return ()
    if isinstance(found, int) and found >= model.context_window:
        return ()
    return (
        Finding(
            key="context_window",
            summary=f"The context window is {_count(found)} tokens in Letta, "
            f"{model.context_window:,} in the spec.",
            hint="In mode repair the declared settings are put back; by hand: sync-tools.",
            severity="critical",
            detail={"found": found, "declared": model.context_window},
        ),
    )


def _count(found: object) -> str:
    return f"{found:,}" if isinstance(found, int) else "unknown"
