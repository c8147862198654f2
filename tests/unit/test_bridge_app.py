"""The bridge's app in memory: health, lists, errors, limits, log lines."""

from __future__ import annotations

import json

import pytest
from structlog.testing import capture_logs

from han_solo.bridge import edge
from han_solo.bridge.health import Health, Sync
from han_solo.bridge.projection import list_tools
from han_solo.errors import DatabaseUnavailable, LettaUnavailable, NotFound, PlanRefused
from han_solo.principals import AUDIENCES

from . import bridge_fakes as fakes

AWAY = Health(
    memory_db_connected=False,
    agent_resolved=True,
    failed={"memory_db": "Postgres does not answer."},
    sync=Sync(in_sync=False, reason="Letta does not answer."),
)


async def test_health_is_ok_when_agent_and_database_are_there():
    async with fakes.serving(fakes.backend()) as client:
        response = await client.get("/health")
    assert response.status_code == 200
    body = response.json()
    assert body["status"] == "ok"
    assert body["memory_db_connected"] is True
    assert body["tools"] == len(fakes.SPECS)
    assert body["version"]


async def test_health_is_200_and_degraded_and_ready_503_when_a_part_is_away():
    backend = fakes.backend()
    backend.health = AWAY
    async with fakes.serving(backend) as client:
        health, ready = await client.get("/health"), await client.get("/ready")
    assert health.status_code == 200
    assert health.json()["status"] == "degraded"
    assert health.json()["failed"] == {"memory_db": "Postgres does not answer."}
    assert health.json()["sync"]["tools_in_sync"] is False
    assert health.json()["sync"]["reason"] == "Letta does not answer."
    assert ready.status_code == 503
    assert int(ready.headers["retry-after"]) > 0


async def test_an_agent_that_is_not_resolved_is_degraded():
    backend = fakes.backend()
    backend.health = Health(
        memory_db_connected=True, agent_resolved=False, failed={"agent": "None."}, sync=Sync()
    )
    async with fakes.serving(backend) as client:
        assert (await client.get("/health")).json()["status"] == "degraded"


@pytest.mark.parametrize("kind", AUDIENCES)
async def test_served_list_equals_the_projection(kind):
    async with fakes.serving(fakes.backend()) as client:
        response = await fakes.rpc(client, "tools/list", f"good-{kind}")
    served = {tool["name"]: tool for tool in response.json()["result"]["tools"]}
    computed = list_tools(fakes.registry(), kind)
    assert sorted(served) == [tool.name for tool in computed]
    for tool in computed:
        assert served[tool.name]["description"] == tool.description
        assert served[tool.name]["inputSchema"] == json.loads(json.dumps(tool.input_schema))
        assert "outputSchema" not in served[tool.name]


async def test_120_tools_come_on_one_page():
    async with fakes.serving(fakes.backend(), fakes.many(120)) as client:
        assert len(await fakes.list_names(client, "good-agent")) == 120


async def test_mcp_answers_in_json_and_without_a_session():
    async with fakes.serving(fakes.backend()) as client:
        response = await fakes.rpc(client, "tools/list", "good-agent")
    assert response.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in response.headers


async def test_arguments_that_do_not_fit_are_one_sentence_without_their_values():
    async with fakes.serving(fakes.backend()) as client:
        worked, text = await fakes.call(client, "good-agent", "echo", text="secret" * 9, times=3)
    assert not worked
    assert "text: String should have at most 20 characters; times: Input should be 1 or 2" in text
    assert "secretsecret" not in text
    assert "errors.pydantic.dev" not in text


async def test_an_argument_that_is_not_declared_is_refused():
    async with fakes.serving(fakes.backend()) as client:
        worked, text = await fakes.call(client, "good-agent", "echo", text="a", context="b")
    assert not worked
    assert "context" in text


async def test_database_away_in_a_tool_is_a_clear_tool_error():
    backend = fakes.backend()
    backend.bind_error = DatabaseUnavailable("Postgres does not answer.", hint="Try again.")
    async with fakes.serving(backend) as client:
        assert await fakes.call(client, "good-agent", "make_card", title="a") == (
            False,
            "Postgres does not answer. Try again.",
        )


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (LettaUnavailable("Letta does not answer."), 503),
        (PlanRefused("The bridge is cold.", reason="bridge_cold"), 409),
        (NotFound("There is none."), 404),
    ],
)
async def test_errors_of_routes_are_sentences_with_their_status(error, status, monkeypatch):
    backend = fakes.backend()

    async def fail():
        raise error

    monkeypatch.setattr(backend, "sync_tools", fail)
    async with fakes.serving(backend) as client:
        response = await client.post(
            "/api/admin/sync-mcp-tools", headers=fakes.bearer("good-operator")
        )
    assert response.status_code == status
    assert response.json()["error"] == error.message
    assert response.json().get("reason") == getattr(error, "reason", None)
    assert ("retry-after" in response.headers) is (status == 503)


async def test_a_bug_in_a_route_is_a_500_with_an_id_and_nothing_else(monkeypatch):
    backend = fakes.backend()

    async def fail():
        raise RuntimeError("postgresql://me:hunter2@db")

    monkeypatch.setattr(backend, "fetch_agent_info", fail)
    async with fakes.serving(backend) as client:
        with capture_logs() as logged:
            response = await client.get(
                "/api/admin/agent-info", headers=fakes.bearer("good-operator")
            )
    assert response.status_code == 500
    assert "hunter2" not in response.text
    [entry] = [line for line in logged if line["event"] == "bridge.fault_raised"]
    assert entry["fault"] in response.json()["error"]


async def test_no_such_route_and_no_such_method_are_json():
    headers = fakes.bearer("good-operator")
    async with fakes.serving(fakes.backend()) as client:
        missing = await client.get("/nowhere", headers=headers)
        wrong = await client.post("/health", headers=headers)
    assert (missing.status_code, missing.json()) == (
        404,
        {"error": "There is nothing at /nowhere."},
    )
    assert (wrong.status_code, wrong.json()) == (405, {"error": "/health does not take POST."})
    assert wrong.headers["allow"]


async def test_a_body_over_the_limit_is_refused_declared_or_not(monkeypatch):
    monkeypatch.setattr(edge, "MAX_BODY_BYTES", 1000)

    async def pieces():
        for _ in range(11):
            yield b"x" * 100

    headers = fakes.bearer("good-agent")
    async with fakes.serving(fakes.backend()) as client:
        for content in (b"x" * 1001, pieces()):
            response = await client.post("/mcp", content=content, headers=headers)
            assert response.status_code == 413
            assert "1,000 bytes" in response.json()["error"]
            assert response.headers["connection"] == "close"


async def test_a_body_is_not_read_for_a_caller_without_a_token():
    async def pieces():
        raise AssertionError("read")
        yield b""

    async with fakes.serving(fakes.backend()) as client:
        response = await client.post("/mcp", content=pieces())
    assert response.status_code == 401


async def test_each_request_is_one_log_line_without_body_or_query():
    async with fakes.serving(fakes.backend()) as client:
        with capture_logs() as logged:
            await fakes.call(client, "good-agent", "echo", text="s3cret")
            await client.get("/health?word=s3cret")
    served = [line for line in logged if line["event"] == "bridge.request_served"]
    assert [(line["method"], line["path"], line["status"]) for line in served] == [
        ("POST", "/mcp", 200),
        ("GET", "/health", 200),
    ]
    assert [line["principal"] for line in served] == ["the-agent", None]
    assert [line["log_level"] for line in served] == ["info", "debug"]
    assert all(line["duration_ms"] >= 0 for line in served)
    [called] = [line for line in logged if line["event"] == "tool.called"]
    assert (called["tool"], called["outcome"]) == ("echo", "done")
    assert "s3cret" not in str(logged)
    assert "good-agent" not in str(logged)
