"""Whether an agent waits for what runs here: set around each tool call that an agent makes.

A tool that messages the agent which waits for it closes a circle: Letta holds the turn open for the
tool, the tool waits for a turn. A tool that could do so is refused when it is loaded; this is the
net below, for one that got hold of a gateway all the same. It holds for everything the call starts
in tasks and in ``asyncio.to_thread``, whichever agent is messaged: two that wait for each other are
no better.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

from .errors import CallbackRefused

_TOOL: Final[ContextVar[str | None]] = ContextVar("han_solo_tool_of_an_agent", default=None)


@contextlib.contextmanager
def serving_agent(tool: str) -> Iterator[None]:
    """Mark what runs inside as a tool call that an agent waits for."""
    token = _TOOL.set(tool)
    try:
        yield
    finally:
        _TOOL.reset(token)


def refuse_callback() -> None:
    """Refuse to message an agent from inside a tool call that an agent waits for.

    Raises:
        CallbackRefused: nothing was sent.
    """
    if (tool := _TOOL.get()) is not None:
        raise CallbackRefused(
            f"The tool {tool} tried to message an agent while an agent waits for that tool.",
            hint="Nothing was sent. Have the tool return what it knows, and let a job, a guard or "
            "an operator's tool send the message (docs/incidents/callback-deadlock.md).",
        )
