"""A turn of the agent, as data: what it said, called and got back, and why it stopped.

A turn can be silent: Letta answers 200 with no assistant message when the model's output was empty,
when the steps ran out on tools, or when an approval is pending. Nothing is judged here; what is
needed to name the cause is kept, and ``han_solo.turns`` names it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .fields import Json, as_object, need_list, need_str, opt_str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made. ``arguments`` is None when its text is no JSON object."""

    id: str
    name: str
    arguments_text: str = field(repr=False)

    @property
    def arguments(self) -> Mapping[str, object] | None:
        try:
            parsed = json.loads(self.arguments_text)
        except ValueError:
            return None
        return parsed if isinstance(parsed, dict) else None


@dataclass(frozen=True, slots=True)
class ToolReturn:
    """What a tool returned. ``status`` is Letta's: ``success`` or ``error``."""

    call_id: str
    name: str
    status: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TurnMessage:
    """One message of the turn, in order; ``kind`` is Letta's ``message_type``."""

    id: str
    kind: str
    text: str = field(repr=False)
    step_id: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. ``assistant_text`` is None when the agent said nothing.

    ``usage`` holds Letta's token counts; ``steps`` the calls of the model it took.
    """

    stop_reason: str
    steps: int
    assistant_text: str | None = field(repr=False)
    tool_calls: tuple[ToolCall, ...]
    tool_returns: tuple[ToolReturn, ...]
    messages: tuple[TurnMessage, ...]
    usage: Mapping[str, int]
    run_id: str | None = None
    awaited_tools: tuple[str, ...] = ()
    """Tools whose call waits for approval; they were not called."""

    @property
    def is_silent(self) -> bool:
        return self.assistant_text is None

    @property
    def awaits_approval(self) -> bool:
        return any(message.kind == "approval_request_message" for message in self.messages)


def parse_turn(source: object, *, run_id: str | None = None) -> Turn:
    """Read a turn; the answer names its run in each message, and nowhere when there are none."""
    body = as_object(source, "turn")
    raw = [as_object(item, "message") for item in need_list(body, "messages", "turn")]
    said = [
        text
        for item in raw
        if item.get("message_type") == "assistant_message"
        and (text := _text(item.get("content"))).strip()
    ]
    calls = tuple(call for item in raw for call in _calls(item))
    names = {call.id: call.name for call in calls}
    usage = {
        key: value
        for key, value in as_object(body.get("usage") or {}, "usage").items()
        if isinstance(value, int)
    }
    stop = as_object(body.get("stop_reason") or {}, "stop reason")
    return Turn(
        stop_reason=opt_str(stop, "stop_reason") or "unknown",
        steps=usage.get("step_count", 0),
        assistant_text="\n\n".join(said) or None,
        tool_calls=calls,
        tool_returns=tuple(found for item in raw for found in _returns(item, names)),
        messages=tuple(_message(item) for item in raw),
        usage=usage,
        awaited_tools=tuple(name for item in raw for name in _awaited(item)),
        run_id=run_id or next(filter(None, (opt_str(item, "run_id") for item in raw)), None),
    )


def _message(item: Json) -> TurnMessage:
    return TurnMessage(
        id=need_str(item, "id", "message"),
        kind=need_str(item, "message_type", "message"),
        text=_text(item.get("content") or item.get("reasoning") or item.get("tool_return")),
        step_id=opt_str(item, "step_id"),
    )


def _calls(item: Json) -> Sequence[ToolCall]:
    # A message names its calls in a list and, for old clients, the first one alone as well; an
    # approval request carries calls that were not made.
    if item.get("message_type") != "tool_call_message":
        return ()
    found = _called(item)
    return [
        ToolCall(
            id=opt_str(call, "tool_call_id") or "",
            name=opt_str(call, "name") or "",
            arguments_text=opt_str(call, "arguments") or "{}",
        )
        for call in found
    ]


def _awaited(item: Json) -> Sequence[str]:
    if item.get("message_type") != "approval_request_message":
        return ()
    return [name for call in _called(item) if (name := opt_str(call, "name"))]


def _called(item: Json) -> Sequence[Json]:
    return _objects(item.get("tool_calls") or [item.get("tool_call")])


def _returns(item: Json, names: Mapping[str, str]) -> Sequence[ToolReturn]:
    if item.get("message_type") != "tool_return_message":
        return ()
    found = _objects(item.get("tool_returns") or [item])
    return [
        ToolReturn(
            call_id=(call_id := opt_str(one, "tool_call_id") or ""),
            # The list of returns has no names; the message has the first one's only.
            name=names.get(call_id) or opt_str(item, "name") or "",
            status=opt_str(one, "status") or "unknown",
            text=_text(one.get("tool_return")),
        )
        for one in found
    ]


def _objects(listed: object) -> Sequence[Json]:
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping)]
        return "".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))
    return ""
