"""What the rehearsal model answers: a pure function of the request, so a turn can be replayed.

It understands nothing. In the last message of the user it looks for, in this order:

1. a fenced block named ``rehearsal`` with a JSON list of steps, one for each call of the model
   since that message: ``{"say": text}``, ``{"call": tool, "args": {...}}``, ``{"calls": [...]}``,
   ``{"thinking": text}``, ``{"empty": true}``, ``{"null": true}``, ``{"error": 500}``,
   ``{"sleep_s": 1}``, ``{"finish": "length"}``, or several of these in one step;
2. a sentence ``Call the tool NAME with {json}``: it calls the tool, then says what came back;
3. else it repeats the message.

Whatever it says begins with its name, so nobody mistakes it for a model.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MODEL: Final = "rehearsal"
SIGNATURE: Final = "[rehearsal model]"

_MAX_ECHO_CHARS: Final = 2_000
_CHARS_PER_TOKEN: Final = 4
_BLOCK: Final = re.compile(r"```rehearsal\s*\n(.*?)```", re.DOTALL)
_CALL: Final = re.compile(r"\bCall the tool (\w+) with (?=\{)", re.IGNORECASE)
_NOT_A_PERSON: Final = frozenset({"heartbeat", "login", "system_alert"})
"""Kinds of messages that older agent types send in the user's name."""

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: str
    """A JSON object as text."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. ``text`` None is a null content; ``error`` is an HTTP status instead of all."""

    text: str | None = None
    calls: tuple[ToolCall, ...] = ()
    thinking: str | None = None
    error: int | None = None
    delay_s: float = 0.0
    finish: str = "stop"
    prompt_tokens: int = 0

    @property
    def completion_tokens(self) -> int:
        said = (self.text or "") + (self.thinking or "")
        return count_tokens(said + "".join(call.arguments for call in self.calls))


def reply(request: Mapping[str, Any]) -> Reply:
    """Return the answer to a chat completion request."""
    messages = [message for message in request.get("messages") or () if isinstance(message, dict)]
    asked = _find_last_user(messages)
    text = _read_text(messages[asked]) if asked is not None else ""
    since = messages[asked + 1 :] if asked is not None else []
    turn = _Turn(
        text=text,
        since=since,
        offered={
            str(tool.get("function", {}).get("name")): tool.get("function", {})
            for tool in request.get("tools") or ()
        },
        must_call=request.get("tool_choice") not in (None, "auto", "none"),
        seed=json.dumps(messages, sort_keys=True, default=str),
    )
    return turn.answer()


def count_tokens(text: str) -> int:
    """Return a rough count that grows with the text, as Letta's sense of a full context needs."""
    return len(text) // _CHARS_PER_TOKEN + 1


@dataclass(frozen=True, slots=True)
class _Turn:
    text: str
    since: Sequence[Message]
    offered: Mapping[str, Mapping[str, Any]]
    must_call: bool
    seed: str

    def answer(self) -> Reply:
        if block := _BLOCK.search(self.text):
            return self._follow_script(block[1])
        if wanted := _CALL.search(self.text):
            return self._call_once(wanted[1], self.text[wanted.end() :])
        echo = self.text.strip()
        if len(echo) > _MAX_ECHO_CHARS:
            echo = echo[:_MAX_ECHO_CHARS] + " ..."
        return self._say(f"I am a stand-in and understand nothing. You wrote: {echo}")

    def _follow_script(self, block: str) -> Reply:
        try:
            steps = json.loads(block)
        except ValueError as error:
            return self._say(f"The script is not JSON: {error}.")
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            return self._say("The script is not a JSON list of objects.")
        position = sum(message.get("role") == "assistant" for message in self.since)
        if position >= len(steps):
            return self._say("The script is at its end.")
        return self._take(steps[position])

    def _take(self, step: Mapping[str, Any]) -> Reply:
        if "error" in step:
            return self._build(error=int(step["error"]), delay_s=float(step.get("sleep_s", 0)))
        wanted = list(step.get("calls") or ([step] if "call" in step else []))
        calls = tuple(
            self._make_call(str(call.get("call")), call.get("args") or {}, position)
            for position, call in enumerate(wanted)
        )
        spoken = self._say(str(step["say"])) if "say" in step else None
        text = spoken.text if spoken else ("" if step.get("empty") or "thinking" in step else None)
        if "sleep_s" in step and not (
            wanted or spoken or {"empty", "null", "thinking"} & set(step)
        ):
            spoken = self._say(f"I waited {step['sleep_s']} s.")
            text = spoken.text
        return self._build(
            text=text,
            calls=calls or (spoken.calls if spoken else ()),
            thinking=str(step["thinking"]) if "thinking" in step else None,
            delay_s=float(step.get("sleep_s", 0)),
            finish=step.get("finish"),
        )

    def _call_once(self, name: str, rest: str) -> Reply:
        returned = [message for message in self.since if message.get("role") == "tool"]
        if returned:
            return self._say(f"{name} returned: {_read_return(returned[-1])}")
        try:
            arguments, _ = json.JSONDecoder().raw_decode(rest)
        except ValueError as error:
            return self._say(f"The arguments for {name} are not JSON: {error}.")
        if name not in self.offered:
            return self._say(f"The tool {name} is not offered to me.")
        return self._build(calls=(self._make_call(name, arguments, 0),))

    def _say(self, text: str) -> Reply:
        """Say it; an agent that must call a tool each time says it through ``send_message``."""
        spoken = f"{SIGNATURE} {text}"
        if self.must_call and "send_message" in self.offered:
            return self._build(calls=(self._make_call("send_message", {"message": spoken}, 0),))
        return self._build(text=spoken)

    def _make_call(self, name: str, arguments: Mapping[str, Any], position: int) -> ToolCall:
        """Build a call; what Letta's older agents demand beside the tool's own is filled in."""
        schema = self.offered.get(name, {}).get("parameters", {})
        filled = dict(arguments)
        for extra, value in (("thinking", "Rehearsing."), ("request_heartbeat", True)):
            if extra in schema.get("required", ()) and extra not in filled:
                filled[extra] = value
        digest = hashlib.sha256(f"{self.seed}/{position}".encode()).hexdigest()
        return ToolCall(f"call_{digest[:20]}", name, json.dumps(filled))

    def _build(
        self,
        *,
        text: str | None = None,
        calls: tuple[ToolCall, ...] = (),
        thinking: str | None = None,
        error: int | None = None,
        delay_s: float = 0.0,
        finish: object = None,
    ) -> Reply:
        return Reply(
            text=text,
            calls=calls,
            thinking=thinking,
            error=error,
            delay_s=delay_s,
            finish=str(finish) if finish else ("tool_calls" if calls else "stop"),
            prompt_tokens=count_tokens(self.seed),
        )


def _find_last_user(messages: Sequence[Message]) -> int | None:
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.get("role") == "user" and not _is_from_machine(_read_text(message)):
            return position
    return None


def _is_from_machine(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return json.loads(text).get("type") in _NOT_A_PERSON
    except ValueError:
        return False


def _read_text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _read_return(message: Message) -> str:
    """Return what a tool gave back, out of the envelope Letta puts it in."""
    text = _read_text(message)
    try:
        envelope = json.loads(text)
    except ValueError:
        return text
    found = envelope.get("message") if isinstance(envelope, dict) else None
    return text if found is None else str(found)
