"""The lead while it is held: until it is lost, and never longer than the last beat is good for.

The server ends the session of a leader that is silent, and another may lead from that moment. A
process that was frozen does not know that it was; it only sees that its lease is over, which it
asks before each write to Letta (``require``), not when a task gets round to telling it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from ..errors import LeadLost

_COUNTS_SLEEP: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock that goes on while the machine sleeps: Linux has one of its own, that of macOS does
(``time.monotonic`` stands still there)."""


class Lead:
    """The lead in an epoch. ``lost`` is set once it is not held, at the latest after a beat."""

    def __init__(self, epoch: int, *, lease_s: float, asked_s: float) -> None:
        """Begin.

        Args:
            epoch: the number of the election.
            lease_s: how long a beat is good for.
            asked_s: when the server was asked, by ``elapsed_s``: before it answered, since it
                may have begun to count right then.
        """
        self.epoch: Final = epoch
        self.lost: Final = asyncio.Event()
        self._lease_s = lease_s
        self._until_s = asked_s + lease_s

    def renew(self, asked_s: float) -> None:
        """Hold it on: the server answered what it was asked then."""
        self._until_s = asked_s + self._lease_s

    @property
    def left_s(self) -> float:
        """Return the seconds for which it is still held, if no other beat comes."""
        return max(self._until_s - elapsed_s(), 0.0)

    @property
    def is_held(self) -> bool:
        return not self.lost.is_set() and self.left_s > 0

    def require(self) -> None:
        """Raise unless it is held.

        Raises:
            LeadLost: it is not, or may not be.
        """
        if not self.is_held:
            raise LeadLost


def elapsed_s() -> float:
    """Return the seconds since some moment, those of sleep among them."""
    return time.clock_gettime(_COUNTS_SLEEP)
