"""The guard against blocks at or over their limit, which Letta does not enforce."""

from __future__ import annotations

from typing import Final

from han_solo import CheckContext, Finding, guard

NEAR: Final = 0.9
"""From here on the next entries of a day may not fit."""


@guard(every_s=300, incident="block-over-limit")
async def block_limits(context: CheckContext) -> tuple[Finding, ...]:
    """Find blocks whose text is over their limit, or over nine tenths of it.

    Over the limit every verified write is refused until the text is shortened.
    """
    found: list[Finding] = []
    for state in await context.blocks():
        if state.length <= NEAR * state.limit:
            continue
        is_over = state.length > state.limit
        found.append(
            Finding(
                key=state.label,
                summary=f"The block {state.label!r} has {state.length:,} characters, "
                + (
                    f"{state.length - state.limit:,} over its limit of {state.limit:,}."
                    if is_over
                    else f"{state.limit - state.length:,} short of its limit of {state.limit:,}."
                ),
                hint=f"Shorten it (han-solo blocks edit {state.label}) or raise its limit in the "
                "agent spec and run sync-tools.",
                severity="critical" if is_over else "warning",
                detail={"length": state.length, "limit": state.limit},
            )
        )
    return tuple(found)
