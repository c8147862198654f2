"""Every kind of silence on the real Letta has its cause, and leaves a record without any text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import asyncpg
import pytest

from han_solo.errors import BlockRefused, DatabaseUnavailable, LettaUnreachable
from han_solo.letta.gateway import LettaGateway
from han_solo.turns import settling
from han_solo.turns.service import Turns
from han_solo.turns.silence import SilentTurn
from tests.servers import LettaServer

from .turn_fixtures import World, open_world, script

CALL = {"call": "note", "args": {}}


@pytest.fixture
async def world(
    letta_server: LettaServer, letta_actor: Mapping[str, str], database_url: str
) -> AsyncIterator[World]:
    async with open_world(letta_server, letta_actor, database_url) as opened:
        yield opened


async def _silence(world: World, *steps: Mapping[str, Any], **options: Any) -> SilentTurn:
    with pytest.raises(SilentTurn) as caught:
        await world.turns().send(script(*steps), sender="s", **options)
    silent = caught.value
    (row,) = [row for row in await world.turns().list() if row.turn_id == silent.turn_id]
    assert (row.outcome, row.cause, row.run_id) == ("silent", silent.cause, silent.run_id)
    assert row.tools == silent.tools
    assert await world.user_messages(script(*steps)) == (1 if silent.is_kept else 0)
    return silent


@pytest.mark.parametrize(
    ("step", "cause", "stop_reason", "is_kept"),
    [
        ({"empty": True}, "empty_output", "end_turn", True),
        ({"empty": True, "finish": "length"}, "empty_output", "end_turn", True),
        ({"empty": True, "finish": "content_filter"}, "empty_output", "end_turn", True),
        ({"null": True}, "empty_output", "failed", False),
        ({"thinking": "Let me see."}, "thinking_only", "end_turn", True),
        ({"thinking": "Long.", "finish": "length"}, "max_tokens", "max_tokens_exceeded", True),
        ({"error": 400}, "provider_error", "failed", False),
        ({"error": 401}, "provider_error", "failed", False),
        ({"error": 429}, "provider_error", "failed", False),
        ({"error": 500}, "provider_error", "failed", False),
    ],
    ids=str,
)
async def test_what_the_model_did_is_the_cause(
    world: World, step: Mapping[str, Any], cause: str, stop_reason: str, is_kept: bool
) -> None:
    silent = await _silence(world, step)
    assert (silent.cause, silent.stop_reason) == (cause, stop_reason)
    assert silent.is_kept is is_kept
    assert silent.run_id is not None
    if cause == "provider_error":
        assert "The rehearsal script asked for this error" in silent.message
    assert "hello" in (await world.turns().send("hello", sender="s")).text


@pytest.mark.parametrize("last", [{"empty": True}, {"null": True}, {"error": 500}], ids=str)
async def test_a_model_that_fails_after_a_tool_keeps_the_message(
    world: World, last: Mapping[str, Any]
) -> None:
    async with world.note_tool():
        silent = await _silence(world, CALL, last)
    assert silent.cause == ("provider_error" if "error" in last else "empty_output")
    assert silent.tools == ("note",)
    assert silent.is_kept is True
    assert silent.turn is not None
    assert silent.turn.tool_returns[0].status == "success"


async def test_steps_that_run_out_on_tools_are_named(world: World) -> None:
    async with world.note_tool():
        silent = await _silence(world, *[CALL] * 5, max_steps=2)
    assert (silent.cause, silent.steps, silent.tools) == ("max_steps", 2, ("note", "note"))


async def test_an_approval_is_named_and_stops_the_next_message(world: World) -> None:
    rule = {"type": "requires_approval", "tool_name": "note"}
    async with world.note_tool(tool_rules=[rule]):
        silent = await _silence(world, CALL)
        assert (silent.cause, silent.is_kept, silent.tools) == ("pending_approval", True, ())
        assert "a call of note waits for approval" in silent.message
        refused = await _silence(world, {"say": "hello?"})
    assert (refused.cause, refused.is_kept, refused.turn) == ("pending_approval", False, None)
    assert refused.status_code == 409


async def test_a_rule_that_ends_the_turn_after_a_tool_is_named(world: World) -> None:
    async with world.note_tool(tool_rules=[{"type": "exit_loop", "tool_name": "note"}]):
        silent = await _silence(world, CALL, {"say": "Never said."})
    assert (silent.cause, silent.stop_reason) == ("tool_rule", "tool_rule")


async def test_a_turn_that_is_cancelled_is_named(world: World) -> None:
    async with world.note_tool():
        sending = asyncio.create_task(_silence(world, {**CALL, "sleep_s": 2}, {"say": "Never."}))
        async with asyncio.timeout(60):
            while not await world.gateway.fetch_active_runs(world.agent.id):
                await asyncio.sleep(0.05)
        path = f"/v1/agents/{world.agent.id}/messages/cancel"
        (await world.http.post(path, json={})).raise_for_status()
        silent = await sending
    assert (silent.cause, silent.stop_reason) == ("cancelled", "cancelled")


async def test_words_before_the_end_are_an_answer_that_says_how_it_broke_off(world: World) -> None:
    reply = await world.turns().send(script({"say": "Cut he", "finish": "length"}), sender="s")
    assert reply.cause == "max_tokens"
    assert "Cut he" in reply.text
    (row,) = await world.turns().list()
    assert (row.outcome, row.cause) == ("answered", "max_tokens")


async def test_an_older_agent_that_answers_through_a_tool_is_not_silent(world: World) -> None:
    (tool,) = [tool for tool in await world.gateway.fetch_tools() if tool.name == "send_message"]
    rule = {"type": "exit_loop", "tool_name": "send_message"}
    older = {"agent_type": "memgpt_v2_agent", "tool_ids": [tool.id], "tool_rules": [rule]}
    async with world.note_tool(**older):
        reply = await world.turns().send(script(CALL, {"say": "Through it."}), sender="s")
        assert "Through it." in reply.text
        assert reply.cause is None
        found = await world.turns().find(reply.turn_id)
        assert found.text == reply.text
        silent = await _silence(world, {"empty": True})
        assert (silent.cause, silent.is_kept) == ("empty_output", False)
        failed = await _silence(world, CALL, {"error": 500})
        assert (failed.cause, failed.is_kept, failed.tools) == ("provider_error", True, ("note",))


async def test_a_run_that_letta_was_killed_in_holds_nobody_up_for_ever(
    world: World, postgres_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = await world.turns().send("hello", sender="s")
    letta = await asyncpg.connect(postgres_server.url("letta", "postgres"))
    await letta.execute(
        "UPDATE runs SET status = 'created', stop_reason = NULL, completed_at = NULL WHERE id = $1",
        reply.turn.run_id,
    )
    await letta.close()
    assert await world.gateway.fetch_active_runs(world.agent.id)
    monkeypatch.setattr(settling, "DEAD_AFTER_S", 0.5)
    assert (await world.turns(wait_s=30).send("hello again", sender="s")).text


# What is left of a turn


async def test_the_record_holds_no_text(world: World) -> None:
    await world.turns().send("a secret of mine", sender="s")
    async with world.db.connection() as connection:
        row = await connection.fetchrow("SELECT t FROM han_solo.turns AS t")
    assert "secret" not in str(row)


async def test_blocks_are_looked_at_after_each_turn(world: World) -> None:
    looked: list[str] = []

    async def look() -> Sequence[str]:
        looked.append("looked")
        return ["notes"]

    turns = world.turns(after_turn=look)
    reply = await turns.send("hello", sender="s")
    with pytest.raises(SilentTurn):
        await turns.send(script({"empty": True}), sender="s")
    assert len(looked) == 2
    assert reply.reverted == ("notes",)
    assert [row.reverted for row in await turns.list()] == [("notes",)] * 2


async def test_a_look_at_the_blocks_that_fails_loses_no_answer(world: World) -> None:
    async def look() -> Sequence[str]:
        raise BlockRefused("No.", reason="unknown_label")

    reply = await world.turns(after_turn=look).send("hello", sender="s")
    assert "hello" in reply.text
    assert reply.reverted is None


async def test_a_database_that_goes_away_in_the_turn_loses_no_answer(
    world: World, postgres_server: Any
) -> None:
    name = world.database_url.rpartition("/")[2]
    root = await asyncpg.connect(postgres_server.url("postgres", "postgres"))

    async def cut() -> Sequence[str]:
        await root.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        await root.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name
        )
        return ()

    try:
        reply = await world.turns(after_turn=cut).send("hello", sender="s")
        assert "hello" in reply.text
        assert reply.ended_at is None
        with pytest.raises(DatabaseUnavailable):
            await world.turns().send("not sent", sender="s")
    finally:
        await root.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        await root.close()
    await world.turns().send("hello again", sender="s")
    rows = (await world.turns().list())[::-1]
    assert [row.outcome for row in rows] == ["answered", "answered"]
    assert await world.user_messages("not sent") == 0


async def test_a_letta_that_is_away_was_sent_nothing(world: World) -> None:
    async with LettaGateway.connect("http://127.0.0.1:1", None) as away:
        with pytest.raises(LettaUnreachable) as caught:
            await Turns(world.db, away, world.agent.id).send("hello", sender="s")
    assert caught.value.retryable
    (row,) = await world.turns().list()
    assert (row.outcome, row.started_at) == ("not_sent", None)
