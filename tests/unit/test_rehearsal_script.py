"""The rehearsal model's answers: a pure function of the request."""

from __future__ import annotations

import json

import pytest

from han_solo.embedded.rehearsal_script import SIGNATURE, reply

ECHO = {"type": "function", "function": {"name": "echo", "parameters": {"required": ["text"]}}}
SEND = {
    "type": "function",
    "function": {"name": "send_message", "parameters": {"required": ["thinking", "message"]}},
}


def user(text):
    return {"role": "user", "content": text}


def script(*steps):
    return user(f"Please.\n```rehearsal\n{json.dumps(steps)}\n```\nThanks.")


def called(name="echo"):
    return {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": name}}]}


def returned(value):
    return {"role": "tool", "content": json.dumps({"status": "OK", "message": value})}


def ask(*messages, **more):
    return reply({"messages": list(messages), "tools": [ECHO], **more})


def test_it_repeats_the_message_and_says_what_it_is():
    answer = ask({"role": "system", "content": "You are Ren."}, user("Good morning"))
    assert answer.text.startswith(SIGNATURE)
    assert answer.text.endswith("You wrote: Good morning")
    assert answer.calls == ()
    assert answer.finish == "stop"


def test_it_answers_the_same_request_with_the_same_reply():
    messages = (user('Call the tool echo with {"text": "x"}'),)
    assert ask(*messages) == ask(*messages)


class TestOneCall:
    asked = user('Call the tool echo with {"text": "a } b"}, please. {"not": "this"}')

    def test_the_tool_is_called_with_the_arguments_given(self):
        [call] = ask(self.asked).calls
        assert call.name == "echo"
        assert json.loads(call.arguments) == {"text": "a } b"}

    def test_its_finish_reason_is_tool_calls(self):
        assert ask(self.asked).finish == "tool_calls"

    def test_what_it_returned_is_said(self):
        answer = ask(self.asked, called(), returned("the value"))
        assert answer.text == f"{SIGNATURE} echo returned: the value"
        assert answer.calls == ()

    def test_a_plain_return_is_said_as_it_is(self):
        answer = ask(self.asked, called(), {"role": "tool", "content": "plain"})
        assert answer.text.endswith("returned: plain")

    def test_a_tool_that_is_not_offered_is_not_called(self):
        answer = ask(user("Call the tool other with {}"))
        assert answer.calls == ()
        assert "other is not offered" in answer.text

    def test_bad_arguments_are_named(self):
        assert "not JSON" in ask(user("Call the tool echo with {text: 1}")).text

    def test_a_new_message_starts_anew(self):
        earlier = (self.asked, called(), returned("old"))
        [call] = ask(*earlier, self.asked).calls
        assert call.name == "echo"

    def test_calls_of_one_conversation_have_different_ids(self):
        first = ask(self.asked).calls[0].id
        later = ask(self.asked, called(), returned("old"), self.asked).calls[0].id
        assert first != later


class TestScript:
    def test_each_call_of_the_model_takes_the_next_step(self):
        asked = script({"call": "echo", "args": {"text": "1"}}, {"say": "two"})
        assert json.loads(ask(asked).calls[0].arguments) == {"text": "1"}
        assert ask(asked, called(), returned("x")).text == f"{SIGNATURE} two"

    def test_after_the_last_step_it_says_so(self):
        answer = ask(script({"say": "one"}), {"role": "assistant", "content": "one"})
        assert answer.text == f"{SIGNATURE} The script is at its end."

    def test_several_calls_come_in_one_answer(self):
        step = {"calls": [{"call": "echo", "args": {"text": "1"}}, {"call": "echo"}]}
        first, second = ask(script(step)).calls
        assert first.id != second.id
        assert json.loads(second.arguments) == {}

    @pytest.mark.parametrize(
        ("step", "text", "thinking"),
        [
            ({"empty": True}, "", None),
            ({"null": True}, None, None),
            ({"thinking": "hm"}, "", "hm"),
            ({"thinking": "hm", "say": "so"}, f"{SIGNATURE} so", "hm"),
        ],
    )
    def test_silent_answers(self, step, text, thinking):
        answer = ask(script(step))
        assert (answer.text, answer.thinking, answer.calls) == (text, thinking, ())

    def test_an_error_is_its_status(self):
        assert ask(script({"error": 429})).error == 429

    def test_a_wait_is_its_seconds(self):
        answer = ask(script({"sleep_s": 2}))
        assert answer.delay_s == 2
        assert answer.text == f"{SIGNATURE} I waited 2 s."

    def test_a_finish_reason_can_be_chosen(self):
        assert ask(script({"say": "cut", "finish": "length"})).finish == "length"

    @pytest.mark.parametrize("block", ["[", '{"say": "x"}', "[1]"])
    def test_a_script_that_can_not_be_read_is_named(self, block):
        assert "script is not" in ask(user(f"```rehearsal\n{block}\n```")).text


class TestOlderAgents:
    def test_they_are_answered_through_send_message(self):
        answer = ask(user("Hello"), tools=[SEND], tool_choice="required")
        [call] = answer.calls
        arguments = json.loads(call.arguments)
        assert arguments["message"].startswith(SIGNATURE)
        assert arguments["thinking"]

    def test_their_heartbeats_are_not_the_users_message(self):
        heartbeat = user(json.dumps({"type": "heartbeat", "reason": "..."}))
        answer = ask(user("Hello"), called(), returned("x"), heartbeat)
        assert answer.text.endswith("You wrote: Hello")


def test_a_message_of_parts_is_read():
    answer = ask({"role": "user", "content": [{"type": "text", "text": "in parts"}]})
    assert answer.text.endswith("You wrote: in parts")


def test_a_long_message_is_not_repeated_whole():
    assert len(ask(user("x" * 100_000)).text) < 3_000


def test_without_a_message_it_still_says_what_it_is():
    assert reply({}).text.startswith(SIGNATURE)


def test_tokens_grow_with_the_conversation():
    assert ask(user("x" * 4_000)).prompt_tokens > 1_000 > ask(user("x")).prompt_tokens
