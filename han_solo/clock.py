"""The clock seam: code asks ``Clock`` for the time and for a sleep, so tests never wait."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Clock:
    """The real clock. Times are aware UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
