"""Each cause of silence is read off the turn, and said in a sentence that helps."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from han_solo.letta.turns import Turn, parse_turn
from han_solo.turns.model import CAUSES, Ending
from han_solo.turns.silence import SilentTurn, cause_of_error, find_cause

CALL = {
    "message_type": "tool_call_message",
    "tool_call": {"name": "search", "arguments": "{}", "tool_call_id": "1"},
}
RETURN = {"message_type": "tool_return_message", "name": "search", "tool_return": "found"}
THOUGHT = {"message_type": "reasoning_message", "reasoning": "Let me see."}
HIDDEN = {"message_type": "hidden_reasoning_message", "state": "omitted"}
WORDS = {"message_type": "assistant_message", "content": "Here."}
APPROVAL = {**CALL, "message_type": "approval_request_message"}


def _turn(stop: str, *messages: dict[str, Any], steps: int = 1) -> Turn:
    return parse_turn(
        {
            "messages": [{"id": f"message-{n}", **body} for n, body in enumerate(messages)],
            "stop_reason": {"stop_reason": stop},
            "usage": {"step_count": steps},
        }
    )


@pytest.mark.parametrize(
    ("turn", "cause"),
    [
        (_turn("end_turn"), "empty_output"),
        (_turn("end_turn", CALL, RETURN), "empty_output"),
        (_turn("end_turn", {**WORDS, "content": " \n"}), "empty_output"),
        (_turn("no_tool_call"), "empty_output"),
        (_turn("end_turn", THOUGHT), "thinking_only"),
        (_turn("end_turn", CALL, RETURN, HIDDEN), "thinking_only"),
        (_turn("max_steps", CALL, RETURN), "max_steps"),
        (_turn("max_tokens_exceeded", THOUGHT), "max_tokens"),
        (_turn("requires_approval", APPROVAL), "pending_approval"),
        (_turn("tool_rule", CALL, RETURN), "tool_rule"),
        (_turn("cancelled", CALL, RETURN), "cancelled"),
        (_turn("llm_api_error"), "provider_error"),
        (_turn("insufficient_credits"), "provider_error"),
        (_turn("a word of a later Letta"), "unknown"),
    ],
)
def test_the_cause_of_a_silent_turn(turn: Turn, cause: str) -> None:
    assert turn.is_silent
    assert find_cause(turn) == cause


@pytest.mark.parametrize(
    ("stop", "cause"),
    [
        ("end_turn", None),
        ("tool_rule", None),
        ("max_steps", "max_steps"),
        ("max_tokens_exceeded", "max_tokens"),
        ("cancelled", "cancelled"),
        ("requires_approval", "pending_approval"),
    ],
)
def test_a_turn_that_spoke_has_a_cause_only_when_it_broke_off(stop: str, cause: str | None) -> None:
    assert find_cause(_turn(stop, WORDS, CALL, RETURN)) == cause


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("LLM provider returned empty content in response (ID: x)", "empty_output"),
        ("No tool calls found in response, model must make a tool call", "empty_output"),
        ("OpenAI API error: Error code: 500 - {}", "provider_error"),
        ("Error code: 401 - {'error': {}}", "provider_error"),
        ("Rate limited by Anthropic", "provider_error"),
        ("(sqlalchemy.exc.OperationalError) connection was closed", "unknown"),
        (None, "unknown"),
    ],
)
def test_the_cause_of_a_failed_run(error: str | None, cause: str) -> None:
    assert cause_of_error(error) == cause


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("turn", [None, _turn("max_steps", CALL, RETURN, APPROVAL, steps=2)])
@pytest.mark.parametrize("is_kept", [True, False, None])
def test_every_cause_has_a_sentence_and_says_whether_to_send_again(
    cause: Any, turn: Turn | None, is_kept: bool | None
) -> None:
    ending = Ending("silent", cause=cause, turn=turn, is_kept=is_kept, error="A reason.")
    silent = SilentTurn(agent_id="agent-1", turn_id=uuid.uuid4(), ending=ending)
    assert silent.cause == cause
    assert "{" not in str(silent)
    assert ".." not in str(silent)
    assert silent.message.startswith("The agent agent-1 said nothing: ")
    assert silent.hint is not None
    expected = {True: "do not send it again", False: "send it again", None: "look before"}
    assert expected[is_kept] in silent.hint
    assert not silent.retryable


def test_the_sentence_names_steps_and_tools() -> None:
    turn = _turn("max_steps", *[CALL, RETURN] * 2, steps=2)
    silent = SilentTurn(
        agent_id="a", turn_id=uuid.uuid4(), ending=Ending("silent", "max_steps", turn, is_kept=True)
    )
    assert "used up its 2 steps on tools (search)" in silent.message
    assert (silent.stop_reason, silent.steps, silent.tools) == ("max_steps", 2, ("search",) * 2)
    assert silent.turn is turn


def test_many_tools_are_counted() -> None:
    calls = [{**CALL, "tool_call": {**CALL["tool_call"], "name": f"t{n}"}} for n in range(9)]
    silent = SilentTurn(
        agent_id="a",
        turn_id=uuid.uuid4(),
        ending=Ending("silent", "max_steps", _turn("max_steps", *calls, steps=9)),
    )
    assert "(t0, t1, t2, t3, t4, t5 and 3 more)" in silent.message
