"""What must hold for a write to be sent to Letta, asked at the last moment before it is.

Who calls: the daemon, whose remedies may write only while it leads. Between two steps of a remedy
the process may be frozen for as long as another needs to take the lead, and what it would do next
was decided before. Every write of the gateway passes here, so nothing is left to the remedies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_require: Final[ContextVar[Callable[[], None] | None]] = ContextVar("letta_fence", default=None)


@contextmanager
def writes_only_while(require: Callable[[], None]) -> Iterator[None]:
    """Ask before each write that the body, or a task that it starts, sends to Letta.

    Args:
        require: raises when nothing may be written any more.
    """
    token = _require.set(require)
    try:
        yield
    finally:
        _require.reset(token)


def check_fence() -> None:
    """Raise what the fence raises, if there is one and it does not hold."""
    require = _require.get()
    if require is not None:
        require()
