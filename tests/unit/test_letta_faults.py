"""Each failure of Letta becomes one of our errors, with a sentence, a hint and no secret."""

from __future__ import annotations

import traceback

import httpx
import pytest

from han_solo import errors
from tests.floors import OpenFloor
from tests.unit.letta_wire import AGENT, BASE_URL, HEALTH, PASSWORD, Wire, reply

THING_404 = reply({"detail": "Agent with ID agent-1 not found"}, 404)
LOOPBACK = (
    "[{'type': 'value_error', 'loc': ('body', 'server_url'), 'msg': 'Value error, Non-public IP "
    "not allowed: 127.0.0.1', 'input': 'http://127.0.0.1:1/mcp', 'ctx': {'error': ValueError('')}}]"
)


async def _error_of(
    *answers: httpx.Response | Exception, **options: str | None
) -> errors.LettaError:
    wire = Wire(answers)
    with pytest.raises(errors.LettaError) as caught:
        await wire.gateway(**options).fetch_block("block-1")
    return caught.value


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, errors.LettaRefused, False),
        (401, errors.LettaUnauthorized, False),
        (403, errors.LettaUnauthorized, False),
        (404, errors.LettaNotFound, False),
        (409, errors.LettaConflict, False),
        (422, errors.LettaRefused, False),
        (429, errors.LettaRefused, False),
        (500, errors.LettaUnavailable, True),
        (502, errors.LettaUnavailable, True),
        (503, errors.LettaUnavailable, True),
    ],
)
async def test_a_status_is_one_error(
    status: int, kind: type[errors.LettaError], *, retryable: bool
) -> None:
    error = await _error_of(reply({"detail": "The reason"}, status))
    assert type(error) is kind
    assert error.status_code == status
    assert error.retryable == retryable
    assert BASE_URL in error.message
    assert "reading the block block-1" in error.message


async def test_a_server_that_is_away_is_unknown_and_never_gone() -> None:
    error = await _error_of(httpx.ConnectError("no"))
    assert type(error) is errors.LettaUnreachable
    assert "can not be reached" in error.message
    assert "LETTA_BASE_URL" in str(error)


async def test_a_timeout_is_unknown() -> None:
    error = await _error_of(httpx.ReadTimeout("slow"))
    assert type(error) is errors.LettaUnavailable
    assert "no answer in time" in error.message
    assert "unknown" in str(error)


async def test_a_broken_connection_is_unknown() -> None:
    error = await _error_of(httpx.ReadError("reset"))
    assert type(error) is errors.LettaUnavailable
    assert "broke off" in error.message


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>Sign in</html>"),
        httpx.Response(404, text="<html>nginx</html>"),
        reply({"detail": "Not Found"}, 404),
        httpx.Response(302, headers={"location": "https://login.example/"}),
    ],
    ids=["login page", "page of a proxy", "no such route", "redirect"],
)
async def test_an_answer_of_another_program_is_unknown_and_never_gone(
    answer: httpx.Response,
) -> None:
    error = await _error_of(answer)
    assert type(error) is errors.LettaUnavailable
    assert "is not Letta" in error.message


async def test_a_missing_password_is_told_from_a_wrong_one() -> None:
    wrong = await _error_of(reply({"detail": "Unauthorized"}, 401))
    missing = await _error_of(reply({"detail": "Unauthorized"}, 401), password=None)
    assert "refuses the password" in wrong.message
    assert "asks for a password" in missing.message
    assert "HAN_SOLO_LETTA_PASSWORD" in str(missing)


async def test_a_password_is_in_no_error_and_no_traceback() -> None:
    for answer in (
        reply({"detail": f"bad header Bearer {PASSWORD}"}, 400),
        reply({"error": {"message": PASSWORD, "detail": PASSWORD}}, 500),
        httpx.Response(200, text=PASSWORD),
    ):
        error = await _error_of(answer)
        assert PASSWORD not in str(error)
        assert PASSWORD not in repr(error)
        assert PASSWORD not in "".join(traceback.format_exception(error))


async def test_values_that_were_sent_are_not_repeated() -> None:
    echo = (
        "[{'type': 'string_type', 'loc': ('body', 'value'), 'msg': 'Input should be a string', "
        "'input': 'the private words'}, {'msg': \"Say 'no'\", 'input': 'more private words'}]"
    )
    error = await _error_of(reply({"detail": echo}, 422))
    assert "Input should be a string Say 'no'" in error.message
    assert "private" not in "".join(traceback.format_exception(error))


async def test_the_sql_of_a_conflict_is_not_repeated() -> None:
    sql = (
        "A unique constraint was violated for MCPServer. (sqlalchemy.dialects.postgresql.asyncpg."
        "UniqueViolationError) duplicate key\n[SQL: INSERT ...]\n[parameters: ('token-of-ours')]"
    )
    error = await _error_of(reply({"detail": sql}, 409))
    assert "A unique constraint was violated for MCPServer." in error.message
    assert "SQL" not in error.message
    assert "token-of-ours" not in error.message


async def test_a_long_reason_is_cut() -> None:
    error = await _error_of(reply({"detail": "x" * 5000}, 400))
    assert len(error.message) < 500


async def test_a_token_is_not_repeated_when_registering_fails() -> None:
    wire = Wire([reply({"detail": "bad token hs_x_secret"}, 400)])
    with pytest.raises(errors.LettaRefused) as caught:
        await wire.gateway().register_mcp_server("s", "https://bridge.example/mcp", "hs_x_secret")
    assert "hs_x_secret" not in str(caught.value)
    assert "[redacted]" in str(caught.value)


async def test_the_refusal_of_private_addresses_tells_the_ways_round() -> None:
    wire = Wire([reply({"detail": LOOPBACK}, 422)])
    with pytest.raises(errors.BridgeUrlRefused) as caught:
        await wire.gateway().register_mcp_server("s", "http://127.0.0.1:1/mcp", None)
    assert "127.0.0.1" in caught.value.message
    assert "han-solo letta serve" in str(caught.value)
    assert "HAN_SOLO_BRIDGE_URL" in str(caught.value)


async def test_a_poisoned_list_of_mcp_servers_says_what_poisons_it() -> None:
    wire = Wire([reply({"detail": "Non-public IP not allowed: 127.0.0.1"}, 400)])
    with pytest.raises(errors.BridgeUrlRefused, match="hides them all"):
        await wire.gateway().fetch_mcp_servers()


async def test_an_agent_is_gone_after_two_404s_of_a_healthy_server() -> None:
    wire = Wire([THING_404, reply(HEALTH), THING_404])
    with pytest.raises(errors.AgentGone, match="has no agent agent-1"):
        await wire.gateway().fetch_agent("agent-1")
    assert [request.url.path for request in wire.requests] == [
        "/v1/agents/agent-1",
        "/v1/health/",
        "/v1/agents/agent-1",
    ]


async def test_an_agent_that_is_found_again_is_not_gone() -> None:
    wire = Wire([THING_404, reply(HEALTH), reply(AGENT)])
    assert (await wire.gateway().fetch_agent("agent-1")).id == "agent-1"


async def test_an_agent_is_not_gone_while_the_server_is_not_healthy() -> None:
    wire = Wire([THING_404, httpx.ConnectError("no")])
    with pytest.raises(errors.LettaUnavailable):
        await wire.gateway().fetch_agent("agent-1")


async def test_a_404_of_a_tool_is_not_the_agents() -> None:
    missing = reply({"detail": "Tool with id=tool-1 not found"}, 404)
    wire = Wire([missing, reply(AGENT)])
    with pytest.raises(errors.LettaNotFound) as caught:
        await wire.gateway().attach_tool("agent-1", "tool-1")
    assert not isinstance(caught.value, errors.AgentGone)


async def test_a_message_to_a_gone_agent_says_that_it_is_gone() -> None:
    wire = Wire([THING_404, THING_404, reply(HEALTH), THING_404])
    with pytest.raises(errors.AgentGone):
        await wire.gateway().send_message(OpenFloor("agent-1"), "hello")


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (502, {"error": {"message": "m", "detail": "401 Unauthorized"}}, "refuses the token"),
        (502, {"error": {"message": "m", "detail": "403 Forbidden"}}, "refuses Letta's call"),
        (502, {"error": {"message": "m", "detail": "All connection"}}, "does not answer Letta"),
        (500, {"detail": "An unknown error occurred"}, "does not list it"),
    ],
)
async def test_a_tool_that_can_not_be_registered_says_whose_fault_it_is(
    status: int, body: object, said: str
) -> None:
    wire = Wire([reply(body, status)])
    with pytest.raises(errors.LettaUnavailable, match=said) as caught:
        await wire.gateway().register_tool("s", "t")
    assert caught.value.hint
    assert len(wire.requests) == 1


@pytest.mark.parametrize(
    "url", ["", "letta.example", "ftp://letta.example", "http://user:pw-x@letta.example"]
)
def test_an_address_that_is_none_is_refused_before_anything_is_sent(url: str) -> None:
    from han_solo.letta.gateway import LettaGateway

    with pytest.raises(errors.SettingsError) as caught:
        LettaGateway.connect(url, None)
    assert "pw-x" not in str(caught.value)


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_a_model_that_fails_is_not_taken_for_letta(status: int) -> None:
    body = {"error": {"type": "llm_authentication", "message": "m", "detail": "The key is bad."}}
    wire = Wire([reply(body, status)])
    with pytest.raises(errors.ModelFailed, match="The key is bad") as caught:
        await wire.gateway().send_message(OpenFloor("agent-1"), "hello")
    assert caught.value.status_code == status
    assert not caught.value.retryable


async def test_a_pending_approval_is_told_from_other_conflicts() -> None:
    said = "CONFLICT: Cannot send a new message: The agent is waiting for approval on a tool call."
    pending = {"detail": {"code": "PENDING_APPROVAL", "message": said}}
    for body, kind in ((pending, errors.ApprovalPending), ({"detail": "x"}, errors.LettaConflict)):
        wire = Wire([reply(body, 409)])
        with pytest.raises(errors.LettaConflict) as caught:
            await wire.gateway().send_message(OpenFloor("agent-1"), "hello")
        assert type(caught.value) is kind
