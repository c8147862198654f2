"""What must never leave the gateway: a delete, a refresh of MCP, two fields of an agent at once."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import han_solo.letta
from han_solo.errors import AgentBusy, LettaRefused, UsageError
from han_solo.letta.gateway import LettaGateway
from han_solo.letta.runs import RunView
from tests.floors import OpenFloor
from tests.unit.letta_wire import AGENT, Wire, healthy, reply

SOURCES = sorted(Path(han_solo.letta.__file__).parent.rglob("*.py"))
FORBIDDEN_WORDS = ("delete", "refresh", "resync", "remove")

TURN_ID = uuid.UUID(int=7)
RUN = RunView(
    id="run-1",
    status="completed",
    stop_reason="end_turn",
    created_at=datetime(2030, 1, 1, tzinfo=UTC),
    completed_at=None,
    turn_id=TURN_ID,
    error=None,
)

Call = Callable[[LettaGateway], Awaitable[object]]

CALLS: dict[str, Call] = {
    "health": lambda letta: letta.health(),
    "fetch_models": lambda letta: letta.fetch_models(),
    "fetch_model_configs": lambda letta: letta.fetch_model_configs(),
    "fetch_model_config": lambda letta: letta.fetch_model_config("p/m"),
    "fetch_embedding_handles": lambda letta: letta.fetch_embedding_handles(),
    "fetch_agent": lambda letta: letta.fetch_agent("agent-1"),
    "find_agents": lambda letta: letta.find_agents("ren"),
    "list_agents": lambda letta: letta.list_agents(),
    "read_archival": lambda letta: _read_all(letta.read_archival("agent-1")),
    "create_agent": lambda letta: letta.create_agent(name="ren", model="p/m"),
    "patch_llm_config": lambda letta: letta.patch_llm_config("agent-1", AGENT["llm_config"]),
    "patch_tool_ids": lambda letta: letta.patch_tool_ids("agent-1", ["tool-1"]),
    "patch_tool_rules": lambda letta: letta.patch_tool_rules("agent-1", [{"type": "x"}]),
    "patch_system": lambda letta: letta.patch_system("agent-1", "words"),
    "patch_name": lambda letta: letta.patch_name("agent-1", "name"),
    "add_tags": lambda letta: letta.add_tags("agent-1", ["new"]),
    "fetch_tools": lambda letta: letta.fetch_tools(),
    "attach_tool": lambda letta: letta.attach_tool("agent-1", "tool-1"),
    "detach_tool": lambda letta: letta.detach_tool("agent-1", "tool-1"),
    "run_tool": lambda letta: letta.run_tool("agent-1", "t", {}),
    "fetch_mcp_servers": lambda letta: letta.fetch_mcp_servers(),
    "register_mcp_server": lambda letta: letta.register_mcp_server(
        "s", "https://bridge.example/mcp", "token"
    ),
    "update_mcp_server": lambda letta: letta.update_mcp_server(
        "s", url="https://bridge.example/mcp", token="token"
    ),
    "register_tool": lambda letta: letta.register_tool("s", "t"),
    "fetch_block": lambda letta: letta.fetch_block("block-1"),
    "create_block": lambda letta: letta.create_block("l", "v", limit=1),
    "write_block": lambda letta: letta.write_block("block-1", "v"),
    "patch_block": lambda letta: letta.patch_block("block-1", limit=2),
    "attach_block": lambda letta: letta.attach_block("agent-1", "block-1"),
    "send_message": lambda letta: letta.send_message(OpenFloor("agent-1"), "hello", max_steps=1),
    "fetch_active_runs": lambda letta: letta.fetch_active_runs("agent-1"),
    "fetch_last_runs": lambda letta: letta.fetch_last_runs("agent-1"),
    "fetch_spoken": lambda letta: letta.fetch_spoken("agent-1", RUN.created_at, RUN.created_at),
    "find_runs": lambda letta: letta.find_runs("agent-1", [TURN_ID]),
    "fetch_kept": lambda letta: letta.fetch_kept(RUN),
    "fetch_last_activity": lambda letta: letta.fetch_last_activity(RUN),
    "create_canary": lambda letta: letta.create_canary("agent-1", AGENT["llm_config"], ["tool-1"]),
    "find_canaries": lambda letta: letta.find_canaries("agent-1"),
    "fetch_providers": lambda letta: letta.fetch_providers(),
    "check_key": lambda letta: letta.check_key("openai", "a key", None),
    "check_provider": lambda letta: letta.check_provider("provider-1"),
    "add_provider": lambda letta: letta.add_provider("mine", "openai", "a key", None),
    "replace_key": lambda letta: letta.replace_key("provider-1", "a key"),
}

DELETES = {"end_canary"}
"""The one call that deletes: a throw-away agent of ours, and nothing else; tested below."""

CANARY = {
    **AGENT,
    "name": "han-solo-canary-1",
    "tags": ["han-solo-canary", "han-solo-canary:agent-0"],
}


async def _read_all(items: AsyncIterator[object]) -> list[object]:
    return [item async for item in items]


def _methods() -> set[str]:
    found = inspect.getmembers(
        LettaGateway, lambda it: inspect.iscoroutinefunction(it) or inspect.isasyncgenfunction(it)
    )
    return {name for name, _ in found if not name.startswith("_")} - {"close"}


def test_the_calls_below_are_all_there_are() -> None:
    assert set(CALLS) | DELETES == _methods()


def test_no_method_is_named_after_what_is_forbidden() -> None:
    for name in dir(LettaGateway):
        assert not any(word in name for word in FORBIDDEN_WORDS), name


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if path.name != "canaries.py"], ids=lambda path: path.name
)
def test_no_source_calls_what_is_forbidden(path: Path) -> None:
    tree = ast.parse(path.read_text())
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert not called & {"delete", "refresh", "resync", "adelete"}
    assert not [t for t in texts if isinstance(t, str) and t.startswith("/") and "refresh" in t]
    assert "DELETE" not in texts


@pytest.mark.parametrize("name", sorted(CALLS))
async def test_no_call_sends_a_delete_a_refresh_or_two_fields(name: str) -> None:
    wire = Wire(healthy)
    await CALLS[name](wire.gateway())
    assert wire.requests
    for request in wire.requests:
        assert request.method in {"GET", "POST", "PATCH"}
        assert "refresh" not in request.url.path
        assert "resync" not in request.url.path
    for request, body in zip(
        [request for request in wire.requests if request.content], wire.bodies(), strict=True
    ):
        if request.method == "PATCH" and "/agents/" in request.url.path:
            assert len(body) == 1
        assert not {"llm_config", "tool_ids"} <= set(body)


def test_canaries_delete_in_one_place_and_agents_only() -> None:
    (path,) = [path for path in SOURCES if path.name == "canaries.py"]
    tree = ast.parse(path.read_text())
    deletes = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == "delete"]
    assert len(deletes) == 1


async def test_a_canary_is_deleted() -> None:
    wire = Wire([reply(CANARY), reply({"message": "deleted"})])
    await wire.gateway().end_canary("agent-1")
    assert [(r.method, r.url.path) for r in wire.requests] == [
        ("GET", "/v1/agents/agent-1"),
        ("DELETE", "/v1/agents/agent-1"),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "ren"},
        {"tags": ["han-solo:ren"]},
        {"blocks": [{"id": "block-1", "label": "l", "value": "v", "limit": 100}]},
    ],
    ids=["another name", "no tag", "a block"],
)
async def test_what_is_no_canary_is_never_deleted(changes: dict[str, object]) -> None:
    wire = Wire([reply({**CANARY, **changes})])
    with pytest.raises(LettaRefused, match="no canary of ours"):
        await wire.gateway().end_canary("agent-1")
    assert {request.method for request in wire.requests} == {"GET"}


async def test_a_providers_key_is_not_kept_from_an_answer() -> None:
    body = {
        "id": "p-1",
        "name": "mine",
        "provider_type": "openai",
        "api_key_enc": "sk-in-the-clear",
    }
    (found,) = await Wire([reply([body])]).gateway().fetch_providers()
    assert found.has_key
    assert "sk-in-the-clear" not in repr(found)


async def test_an_error_about_a_provider_does_not_repeat_its_key() -> None:
    wire = Wire([reply({"detail": "the key sk-in-the-clear is bad"}, 400)])
    with pytest.raises(LettaRefused) as caught:
        await wire.gateway().add_provider("mine", "openai", "sk-in-the-clear", None)
    assert "sk-in-the-clear" not in str(caught.value)


async def test_a_new_agent_declines_everything_of_lettas_own() -> None:
    wire = Wire(healthy)
    await wire.gateway().create_agent(name="ren", model="p/m", timezone="Europe/Zurich")
    (body,) = wire.bodies()
    assert body["include_base_tools"] is False
    assert body["include_base_tool_rules"] is False
    assert body["include_multi_agent_tools"] is False
    assert body["tool_ids"] == []
    assert body["timezone"] == "Europe/Zurich"
    assert "embedding" not in body


async def test_every_read_of_agents_asks_for_all_three_parts() -> None:
    wire = Wire(healthy)
    gateway = wire.gateway()
    await gateway.fetch_agent("agent-1")
    await gateway.find_agents("ren")
    await gateway.create_agent(name="ren", model="p/m")
    for request in wire.requests:
        assert sorted(request.url.params.get_list("include")) == [
            "agent.blocks",
            "agent.tags",
            "agent.tools",
        ]


async def test_a_config_that_lacks_a_field_is_refused_before_it_is_sent() -> None:
    wire = Wire(healthy)
    with pytest.raises(LettaRefused, match="lacks context_window, enable_reasoner"):
        await wire.gateway().patch_llm_config("agent-1", {"model": "m"})
    assert [request.method for request in wire.requests] == ["GET"]


async def test_tags_are_added_and_never_taken() -> None:
    wire = Wire(healthy)
    await wire.gateway().add_tags("agent-1", ["new", "kept", "new"])
    assert wire.bodies() == [{"tags": ["kept", "new"]}]


async def test_tags_that_are_there_send_nothing() -> None:
    wire = Wire(healthy)
    await wire.gateway().add_tags("agent-1", ["kept"])
    assert [request.method for request in wire.requests] == ["GET"]


async def test_agents_of_a_similar_name_are_not_found() -> None:
    wire = Wire([reply([AGENT, {**AGENT, "id": "agent-2", "name": "ren 2"}])])
    found = await wire.gateway().find_agents("ren")
    assert [agent.id for agent in found] == ["agent-1"]


async def test_ids_can_not_lead_to_another_path() -> None:
    wire = Wire(healthy)
    await wire.gateway().write_block("block-1/../../agents", "v")
    assert wire.requests[0].url.raw_path == b"/v1/blocks/block-1%2F..%2F..%2Fagents"


def test_importing_the_gateway_does_not_import_the_sdk() -> None:
    code = "import sys, han_solo.letta.gateway; sys.exit('letta_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_message_bears_the_turns_id_twice() -> None:
    wire = Wire(healthy)
    await wire.gateway().send_message(OpenFloor("agent-1", TURN_ID), "hello")
    assert wire.bodies() == [
        {
            "messages": [{"role": "user", "content": "hello", "otid": str(TURN_ID)}],
            "assistant_message_tool_kwarg": str(TURN_ID),
        }
    ]


async def test_without_the_floor_nothing_is_sent() -> None:
    wire = Wire(healthy)
    with pytest.raises(AgentBusy):
        await wire.gateway().send_message(OpenFloor("agent-1", is_held=False), "hello")
    assert wire.requests == []


@pytest.mark.parametrize("max_steps", [0, -1])
async def test_a_turn_without_a_step_is_refused(max_steps: int) -> None:
    wire = Wire(healthy)
    with pytest.raises(UsageError, match="one step at least"):
        await wire.gateway().send_message(OpenFloor("agent-1"), "hello", max_steps=max_steps)
    assert wire.requests == []
