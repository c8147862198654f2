"""Reads are tried again, writes and messages never; the environment adds nothing."""

from __future__ import annotations

import httpx
import pytest

from han_solo.errors import LettaUnavailable, LettaUnreachable
from han_solo.letta import link
from tests.floors import OpenFloor
from tests.unit.letta_wire import AGENT, BLOCK, TURN, Wire, healthy, reply

BROKEN = reply({"detail": "An unknown error occurred"}, 500)


@pytest.mark.parametrize("fault", [BROKEN, httpx.ConnectError("no"), httpx.ReadError("reset")])
async def test_a_read_is_tried_again_after_a_fault_that_passes(
    fault: httpx.Response | Exception,
) -> None:
    wire = Wire([fault, fault, reply(BLOCK)])
    assert (await wire.gateway().fetch_block("block-1")).value == "v"
    assert tuple(wire.clock.slept_s) == link.RETRY_DELAYS_S


async def test_a_read_is_tried_three_times_at_most() -> None:
    wire = Wire([BROKEN])
    with pytest.raises(LettaUnavailable):
        await wire.gateway().fetch_block("block-1")
    assert len(wire.requests) == 3


@pytest.mark.parametrize(
    "fault",
    [
        httpx.ReadTimeout("slow"),
        httpx.Response(200, text="<html>"),
        reply({"detail": "x"}, 409),
        reply({"detail": "x"}, 429),
    ],
    ids=["timeout", "not Letta", "conflict", "too many"],
)
async def test_a_read_is_not_tried_again_where_that_would_not_help(
    fault: httpx.Response | Exception,
) -> None:
    wire = Wire([fault])
    with pytest.raises(Exception, match="Letta"):
        await wire.gateway().fetch_block("block-1")
    assert len(wire.requests) == 1


@pytest.mark.parametrize(
    "fault",
    [BROKEN, httpx.ReadTimeout("slow"), httpx.ReadError("reset")],
    ids=["500", "timeout", "reset"],
)
async def test_a_message_is_sent_once_and_its_error_is_not_retryable(
    fault: httpx.Response | Exception,
) -> None:
    wire = Wire([fault])
    with pytest.raises(LettaUnavailable) as caught:
        await wire.gateway().send_message(OpenFloor("agent-1"), "hello")
    assert len(wire.requests) == 1
    assert not caught.value.retryable
    assert LettaUnavailable.retryable


@pytest.mark.parametrize("fault", [httpx.ConnectError("no"), httpx.ConnectTimeout("slow")])
async def test_a_message_that_could_not_be_sent_can_be_sent_again(fault: Exception) -> None:
    wire = Wire([fault])
    with pytest.raises(LettaUnreachable) as caught:
        await wire.gateway().send_message(OpenFloor("agent-1"), "hello")
    assert len(wire.requests) == 1
    assert caught.value.retryable


async def test_a_message_has_the_long_deadline_and_nothing_else_has() -> None:
    wire = Wire(lambda request: reply(TURN if request.method == "POST" else BLOCK))
    gateway = wire.gateway()
    await gateway.send_message(OpenFloor("agent-1"), "hello")
    await gateway.fetch_block("block-1")
    deadlines = [request.extensions["timeout"] for request in wire.requests]
    assert [deadline["read"] for deadline in deadlines] == [600.0, 30.0]
    assert [deadline["connect"] for deadline in deadlines] == [30.0, 30.0]


async def test_the_password_is_sent_as_bearer() -> None:
    wire = Wire([reply(AGENT)])
    await wire.gateway(password="pw").fetch_agent("agent-1")
    assert wire.requests[0].headers["authorization"] == "Bearer pw"


async def test_a_key_of_the_environment_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LETTA_API_KEY", "somebody-elses-key")
    monkeypatch.setenv("LETTA_BASE_URL", "https://elsewhere.example")
    wire = Wire(healthy)
    gateway = wire.gateway(password=None)
    await gateway.fetch_agent("agent-1")
    await gateway.send_message(OpenFloor("agent-1"), "hello")
    assert len(wire.requests) == 2
    for request in wire.requests:
        assert "authorization" not in request.headers
        assert request.url.host == "letta.example"


async def test_a_gateway_can_be_closed_before_it_was_used_and_twice() -> None:
    gateway = Wire([reply(AGENT)]).gateway()
    await gateway.close()
    async with gateway:
        await gateway.fetch_agent("agent-1")
    await gateway.close()
