"""How long something held up the event loop, while it ran.

A blocking call in one guard keeps every other from looking and the leader from its heartbeat, and
no deadline can cut it off; but it can be named afterwards.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final, Self

STEP_S: Final = 0.1


class LoopWatch:
    """Measures the longest time in which the loop did not turn. ``longest_s`` is in seconds."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._last = 0.0

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._last = time.monotonic()
        self._timer = self._loop.call_later(STEP_S, self._turn)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._timer.cancel()
        self._note()

    def _turn(self) -> None:
        self._note()
        self._timer = self._loop.call_later(STEP_S, self._turn)

    def _note(self) -> None:
        now = time.monotonic()
        self.longest_s = max(self.longest_s, now - self._last - STEP_S)
        self._last = now
