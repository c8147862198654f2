"""Whether an agent waits for what runs here: set around each tool call that an agent makes.

A tool that messages the agent which waits for it closes a circle: Letta holds the turn open for the
tool, the tool waits for a turn. A tool that could do so is refused when it is loaded; this is the
net below, for one that got hold of a gateway all the same.

It has two meshes. What the call starts in tasks and in ``asyncio.to_thread`` knows that it is part
of a call, and may message no agent at all: two that wait for each other are no better. A thread or
an executor that the call starts knows nothing; so nothing in this process may message the very
agent that waits for a call, for as long as the call runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

from .errors import CallbackRefused

_TOOL: Final[ContextVar[str | None]] = ContextVar("han_solo_tool_of_an_agent", default=None)

_WAITING: Final[dict[str, list[str]]] = {}
"""The tools that each agent waits for in this process; an agent may call one twice at once."""


@contextlib.contextmanager
def serving_agent(tool: str, agent_id: str | None = None) -> Iterator[None]:
    """Mark what runs inside as a tool call that an agent waits for."""
    token = _TOOL.set(tool)
    if agent_id is not None:
        _WAITING.setdefault(agent_id, []).append(tool)
    try:
        yield
    finally:
        _TOOL.reset(token)
        if agent_id is not None:
            _WAITING[agent_id].remove(tool)
            if not _WAITING[agent_id]:
                del _WAITING[agent_id]


def refuse_callback(agent_id: str | None = None) -> None:
    """Refuse to message an agent from inside a tool call that an agent waits for.

    Args:
        agent_id: the agent that is about to be messaged, where whoever asks holds the floor. A
            turn that is over waits for no tool; one whose call Letta gave up on, and which still
            runs here, keeps the agent from being messaged until it ends.

    Raises:
        CallbackRefused: nothing was sent.
    """
    if (tool := _TOOL.get()) is not None:
        raise CallbackRefused(
            f"The tool {tool} tried to message an agent while an agent waits for that tool.",
            hint="Nothing was sent. Have the tool return what it knows, and let a job, a guard or "
            "an operator's tool send the message (docs/incidents/callback-deadlock.md).",
        )
    if agent_id is not None and (tools := _WAITING.get(agent_id)):
        raise CallbackRefused(
            f"The agent {agent_id} waits for the tool {tools[0]}, which runs here, and something "
            "here tried to message it.",
            hint="Nothing was sent. If it was the tool, have it return what it knows; if not, try "
            "again when the tool has ended (docs/incidents/callback-deadlock.md).",
        )
