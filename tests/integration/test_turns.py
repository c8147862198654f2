"""Turns on the real Letta: one at a time across processes, paced, in order, and never twice."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from han_solo.errors import AgentBusy, LettaUnreachable, NotFound, TurnUnknown, UsageError
from han_solo.letta.gateway import LettaGateway
from han_solo.turns import floor
from han_solo.turns.model import Reply, TurnRecord
from han_solo.turns.service import Turns
from tests.floors import OpenFloor
from tests.servers import LettaServer

from .store_fixtures import superuser
from .turn_fixtures import World, open_world, script


@pytest.fixture
async def world(
    letta_server: LettaServer, letta_actor: Mapping[str, str], database_url: str
) -> AsyncIterator[World]:
    async with open_world(letta_server, letta_actor, database_url) as opened:
        yield opened


def _message(name: str, *steps: Mapping[str, Any]) -> str:
    return f"Message {name}. {script(*(steps or ({'say': f'Answer {name}.', 'sleep_s': 0.3},)))}"


def _all_ended(count: int) -> Any:
    return lambda rows: len(rows) == count and all(row.outcome for row in rows)


def _has_begun(rows: Sequence[TurnRecord]) -> bool:
    return any(row.started_at for row in rows)


# One at a time


async def test_five_senders_in_three_processes_take_turns(world: World) -> None:
    names = [["a", "b"], ["c", "d"], ["e"]]
    senders = [
        await world.start_sender(f"sender {n}", [_message(name) for name in group])
        for n, group in enumerate(names)
    ]
    for sender in senders:
        out, err = await sender.communicate()
        assert sender.returncode == 0, err.decode()
        assert all("Answer" in json.loads(line)["text"] for line in out.splitlines())

    rows = sorted(await world.turns().list(), key=lambda row: row.started_at)
    assert [row.outcome for row in rows] == ["answered"] * 5
    for before, after in itertools.pairwise(rows):
        assert before.ended_at is not None
        assert after.started_at is not None
        assert before.ended_at <= after.started_at
    # First come, first served; of two that come within the same moment either may be the first.
    for before, after in itertools.combinations(rows, 2):
        assert before.queued_at < after.queued_at + timedelta(milliseconds=100)

    said = [(kind, text) for kind, text in await world.context() if kind != "system_message"]
    assert len(said) == 10
    for asked, answered in zip(said[::2], said[1::2], strict=True):
        assert (asked[0], answered[0]) == ("user_message", "assistant_message")
        name = asked[1].removeprefix("Message ")[0]
        assert f"Answer {name}." in answered[1]


async def test_without_the_floor_turns_push_each_other_out_of_the_context(world: World) -> None:
    floors = [OpenFloor(world.agent.id) for _ in range(5)]
    answers = await asyncio.gather(
        *(world.gateway.send_message(one, _message(str(n))) for n, one in enumerate(floors))
    )
    assert not any(turn.is_silent for turn in answers)
    asked = [text for kind, text in await world.context() if kind == "user_message"]
    assert len(asked) < len(floors)


async def test_a_sender_that_is_killed_in_its_turn_lets_the_next_go_on(world: World) -> None:
    slow = _message("slow", {"say": "Answer slow.", "sleep_s": 4})
    killed = await world.start_sender("killed", [slow])
    await world.wait_for_rows(_has_begun)
    await _wait_for_run(world)
    killed.send_signal(signal.SIGKILL)
    await killed.wait()

    reply = await world.turns().send(_message("next"), sender="next")
    assert "Answer next." in reply.text
    first, second = (await world.turns().list())[::-1]
    assert (first.sender, first.outcome, first.stop_reason) == ("killed", "answered", "end_turn")
    assert not first.sender_lives
    assert first.ended_at is not None
    assert second.started_at is not None
    assert first.ended_at <= second.started_at
    asked = [text for kind, text in await world.context() if kind == "user_message"]
    assert [text.split()[1] for text in asked] == ["slow.", "next."]


async def test_a_sender_that_is_killed_in_the_queue_holds_up_nobody(world: World) -> None:
    turns = world.turns()
    slow = asyncio.create_task(
        turns.send(_message("slow", {"say": "Answer.", "sleep_s": 3}), sender="slow")
    )
    await world.wait_for_rows(_has_begun)
    killed = await world.start_sender("killed", [_message("killed")])
    await world.wait_for_rows(lambda rows: len(rows) == 2)
    killed.send_signal(signal.SIGKILL)
    await killed.wait()

    await turns.send(_message("next"), sender="next")
    await slow
    rows = (await turns.list())[::-1]
    assert [(row.sender, row.outcome) for row in rows] == [
        ("slow", "answered"),
        ("killed", "not_sent"),
        ("next", "answered"),
    ]
    assert await world.user_messages("Message killed") == 0


async def test_a_turn_that_others_began_is_waited_for(world: World) -> None:
    slow = _message("foreign", {"say": "Answer foreign.", "sleep_s": 2})
    path = f"/v1/agents/{world.agent.id}/messages"
    body = {"messages": [{"role": "user", "content": slow}]}
    foreign = asyncio.create_task(world.http.post(path, json=body))
    await _wait_for_run(world)
    with pytest.raises(AgentBusy, match="that han-solo did not begin") as caught:
        await world.turns(wait_s=0.2).send(_message("busy"), sender="us")
    assert caught.value.retryable
    await world.turns().send(_message("ours"), sender="us")
    (await foreign).raise_for_status()
    asked = [text for kind, text in await world.context() if kind == "user_message"]
    assert [text.split()[1] for text in asked] == ["foreign.", "ours."]


async def test_a_session_that_is_lost_in_a_turn_loses_neither_answer_nor_order(
    world: World, postgres_server: Any
) -> None:
    turns = world.turns()
    slow = asyncio.create_task(
        turns.send(_message("slow", {"say": "Answer slow.", "sleep_s": 3}), sender="slow")
    )
    await world.wait_for_rows(_has_begun)
    await _wait_for_run(world)
    async with superuser(postgres_server, world.database_url) as root:
        await root.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'han-solo turn' AND datname = current_database()"
        )
    second = await turns.send(_message("next"), sender="next")
    first = await slow
    assert "Answer slow." in first.text
    asked = [text for kind, text in await world.context() if kind == "user_message"]
    assert [text.split()[1] for text in asked] == ["slow.", "next."]
    run = (await world.gateway.find_runs(world.agent.id, [first.turn_id]))[first.turn_id]
    assert run.completed_at is not None
    assert run.completed_at <= second.started_at


async def test_one_agents_turn_does_not_hold_up_anothers(world: World) -> None:
    slow = asyncio.create_task(
        world.turns().send(_message("slow", {"say": "Answer.", "sleep_s": 3}), sender="slow")
    )
    await world.wait_for_rows(_has_begun)
    await world.make_agent()
    await world.turns(wait_s=0.0).send(_message("other"), sender="other")
    assert not slow.done()
    await slow


# Waiting


async def test_who_waits_too_long_is_told_who_has_the_agent(world: World) -> None:
    turns = world.turns()
    slow = asyncio.create_task(
        turns.send(_message("slow", {"say": "Answer.", "sleep_s": 3}), sender="the dream")
    )
    await world.wait_for_rows(_has_begun)
    with pytest.raises(AgentBusy, match="is in a turn of the dream, since ") as caught:
        await turns.send(_message("second"), sender="me", wait_s=0.3)
    assert caught.value.holder == "the dream"
    assert caught.value.since is not None
    await slow
    rows = (await turns.list())[::-1]
    assert [row.outcome for row in rows] == ["answered", "not_sent"]
    assert await world.user_messages("Message second") == 0


async def test_a_queue_that_is_too_long_takes_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(floor, "MAX_WAITING", 2)
    turns = world.turns()

    def send(name: str, sleep_s: float = 0) -> asyncio.Task[Reply]:
        message = _message(name, {"say": "A.", "sleep_s": sleep_s})
        return asyncio.create_task(turns.send(message, sender="s"))

    sent = [send("0", sleep_s=2)]
    await world.wait_for_rows(_has_begun)
    sent += [send("1"), send("2")]
    await world.wait_for_rows(lambda rows: len(rows) == 3)
    with pytest.raises(AgentBusy, match="2 messages wait for the agent"):
        await turns.send("one more", sender="late")
    await asyncio.gather(*sent)


async def test_turns_are_paced_by_the_recorded_end_across_processes(world: World) -> None:
    await world.turns().send(_message("first"), sender="here")
    sender = await world.start_sender("there", [_message("second")], gap_s=0.8)
    out, err = await sender.communicate()
    assert b"Answer second." in out, err.decode()
    await world.turns(gap_s=0.6).send(_message("third"), sender="here")
    first, second, third = (await world.turns().list())[::-1]
    assert (second.started_at - first.ended_at).total_seconds() >= 0.8
    assert (third.started_at - second.ended_at).total_seconds() >= 0.6


async def test_a_message_that_was_not_sent_delays_nobody(world: World) -> None:
    away = LettaGateway.connect("http://127.0.0.1:1", None)
    async with away:
        with pytest.raises(LettaUnreachable):
            await Turns(world.db, away, world.agent.id).send("hello", sender="s")
    began = time.monotonic()
    await world.turns(gap_s=60.0).send("hello", sender="s")
    assert time.monotonic() - began < 30


# Never twice


async def test_after_a_timeout_the_message_was_sent_once_and_its_answer_is_found(
    world: World,
) -> None:
    message = _message("once", {"say": "Answer once.", "sleep_s": 2})
    async with world.impatient() as impatient:
        with pytest.raises(TurnUnknown, match="may still run") as caught:
            await impatient.send(message, sender="the dream")
    assert not caught.value.retryable
    assert caught.value.run_id is not None
    turn_id = caught.value.turn_id
    turns = world.turns()
    found = await turns.find(turn_id)
    assert (found.state, found.text, found.record.outcome) == ("running", None, "unknown")
    async with asyncio.timeout(60):
        while (found := await turns.find(turn_id)).state == "running":
            await asyncio.sleep(0.1)
    assert found.state == "answered"
    assert found.text is not None
    assert "Answer once." in found.text
    assert (found.record.outcome, found.record.steps) == ("answered", 1)
    assert await world.user_messages("Message once") == 1


async def test_after_a_timeout_the_next_message_waits_for_the_turns_end(world: World) -> None:
    async with world.impatient() as impatient:
        with pytest.raises(TurnUnknown) as caught:
            await impatient.send(_message("a", {"say": "A.", "sleep_s": 2}), sender="s")
        with pytest.raises(AgentBusy, match="that was given up on here"):
            await impatient.send(_message("b"), sender="s", wait_s=0.0)
    reply = await world.turns().send(_message("c"), sender="s")
    first = await world.turns().find(caught.value.turn_id)
    assert first.state == "answered"
    assert first.record.ended_at is not None
    assert first.record.ended_at <= reply.started_at
    asked = [text for kind, text in await world.context() if kind == "user_message"]
    assert [text.split()[1] for text in asked] == ["a.", "c."]


async def test_a_turn_that_ends_silently_after_a_timeout_is_found_with_its_cause(
    world: World,
) -> None:
    async with world.impatient() as impatient:
        with pytest.raises(TurnUnknown) as caught:
            await impatient.send(script({"empty": True, "sleep_s": 1.5}), sender="s")
    turns = world.turns()
    async with asyncio.timeout(60):
        while (found := await turns.find(caught.value.turn_id)).state == "running":
            await asyncio.sleep(0.1)
    assert (found.state, found.record.cause) == ("silent", "empty_output")


async def test_a_message_that_letta_never_took_is_found_as_not_sent(world: World) -> None:
    turn_id = uuid.uuid4()
    async with world.db.connection() as connection:
        await connection.execute(
            "INSERT INTO han_solo.turns (turn_id, agent_id, sender, backend_pid, queued_at,"
            " started_at) VALUES ($1, $2, 'killed', 0, now() - interval '1 minute',"
            " now() - interval '1 minute')",
            turn_id,
            world.agent.id,
        )
    found = await world.turns().find(turn_id)
    assert (found.state, found.record.outcome) == ("not_sent", "not_sent")


async def test_an_id_is_used_once(world: World) -> None:
    turns, turn_id = world.turns(), uuid.uuid4()
    await turns.send(_message("first"), sender="s", turn_id=turn_id)
    with pytest.raises(UsageError, match="was sent before"):
        await turns.send(_message("again"), sender="s", turn_id=turn_id)
    assert await world.user_messages("Message again") == 0
    assert "Answer first." in ((await turns.find(turn_id)).text or "")


async def test_a_turn_of_another_agent_or_of_nobody_is_not_found(world: World) -> None:
    reply = await world.turns().send("hello", sender="s")
    await world.make_agent()
    for turn_id in (reply.turn_id, uuid.uuid4()):
        with pytest.raises(NotFound, match=str(turn_id)):
            await world.turns().find(turn_id)


async def _wait_for_run(world: World) -> None:
    async with asyncio.timeout(60):
        while not await world.gateway.fetch_active_runs(world.agent.id):
            await asyncio.sleep(0.02)
