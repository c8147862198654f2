"""A turn keeps what tells why it was silent."""

from __future__ import annotations

from typing import Any

import pytest

from han_solo.errors import LettaRefused
from han_solo.letta import turns


def _turn(*messages: dict[str, Any], stop: str = "end_turn", steps: int = 1) -> turns.Turn:
    return turns.parse_turn(
        {
            "messages": [{"id": f"message-{n}", **body} for n, body in enumerate(messages)],
            "stop_reason": {"message_type": "stop_reason", "stop_reason": stop},
            "usage": {"step_count": steps, "total_tokens": 15, "run_ids": None},
        }
    )


def test_what_the_agent_said_is_joined() -> None:
    turn = _turn(
        {"message_type": "assistant_message", "content": "One."},
        {"message_type": "assistant_message", "content": [{"type": "text", "text": "Two."}]},
    )
    assert turn.assistant_text == "One.\n\nTwo."
    assert not turn.is_silent
    assert turn.usage == {"step_count": 1, "total_tokens": 15}


def test_a_turn_without_messages_is_silent_and_keeps_its_stop_reason() -> None:
    turn = _turn(stop="max_steps", steps=50)
    assert turn.is_silent
    assert turn.assistant_text is None
    assert (turn.stop_reason, turn.steps) == ("max_steps", 50)


def test_empty_words_are_silence() -> None:
    assert _turn({"message_type": "assistant_message", "content": ""}).is_silent


def test_calls_and_returns_are_paired_by_the_calls_id() -> None:
    turn = _turn(
        {
            "message_type": "tool_call_message",
            "tool_call": {"name": "a", "arguments": '{"x": 1}', "tool_call_id": "1"},
            "tool_calls": [
                {"name": "a", "arguments": '{"x": 1}', "tool_call_id": "1"},
                {"name": "b", "arguments": "no json", "tool_call_id": "2"},
            ],
        },
        {
            "message_type": "tool_return_message",
            "name": "a",
            "tool_returns": [
                {"tool_call_id": "1", "status": "success", "tool_return": "fine"},
                {"tool_call_id": "2", "status": "error", "tool_return": [{"text": "not fine"}]},
            ],
        },
    )
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [
        ("a", {"x": 1}),
        ("b", None),
    ]
    assert [(found.name, found.status, found.text) for found in turn.tool_returns] == [
        ("a", "success", "fine"),
        ("b", "error", "not fine"),
    ]
    assert [message.kind for message in turn.messages] == [
        "tool_call_message",
        "tool_return_message",
    ]


def test_one_call_in_the_old_form_is_read() -> None:
    turn = _turn(
        {
            "message_type": "tool_call_message",
            "tool_call": {"name": "a", "arguments": "{}", "tool_call_id": "1"},
        },
        {
            "message_type": "tool_return_message",
            "name": "a",
            "tool_call_id": "1",
            "status": "success",
            "tool_return": "fine",
        },
    )
    assert [call.name for call in turn.tool_calls] == ["a"]
    assert turn.tool_returns[0].text == "fine"


def test_a_call_that_waits_for_approval_was_not_made() -> None:
    turn = _turn(
        {
            "message_type": "approval_request_message",
            "tool_call": {"name": "a", "arguments": "{}", "tool_call_id": "1"},
        },
        stop="requires_approval",
    )
    assert turn.tool_calls == ()
    assert turn.awaits_approval
    assert turn.is_silent


def test_an_answer_without_messages_is_refused() -> None:
    with pytest.raises(LettaRefused, match="no 'messages'"):
        turns.parse_turn({"usage": {}})


def test_words_are_not_in_the_repr() -> None:
    assert "secret" not in repr(_turn({"message_type": "assistant_message", "content": "secret"}))
