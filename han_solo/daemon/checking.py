"""One look of one guard, within its time, and without holding up the others."""

from __future__ import annotations

import asyncio
from typing import Final

from ..declare import Finding, GuardSpec
from ..errors import HanSoloError
from ..guard_context import CheckContext
from .loop_watch import LoopWatch

CHECK_TIMEOUT_S: Final = 120.0
"""A check is a few reads; one that hangs must not keep the others from looking."""

MOST_HELD_S: Final = 2.0
"""A check that holds the loop longer than this costs others their deadlines, and soon the lead."""


async def run_check(spec: GuardSpec, context: CheckContext) -> tuple[Finding, ...]:
    """Have a guard look, once.

    Raises:
        HanSoloError: it did not end in time, or held up the process.
        ValueError: two findings have one key.
    """
    deadline = asyncio.timeout(CHECK_TIMEOUT_S)
    try:
        async with deadline, LoopWatch() as watch:
            found = tuple(await spec.check(context))
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise HanSoloError(f"It did not end within {CHECK_TIMEOUT_S:g} s.") from error
    if watch.longest_s > MOST_HELD_S:
        raise HanSoloError(
            f"It held up the whole process for {watch.longest_s:.0f} s, so that no deadline "
            "and no heartbeat could be kept.",
            hint="Have it await what takes long, or put it into asyncio.to_thread.",
        )
    if len({finding.key for finding in found}) < len(found):
        raise ValueError("two findings have one key")
    return found
