"""Answers are parsed tolerantly, and half an answer is an error that names what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from han_solo.errors import LettaRefused
from han_solo.letta import views

TOOL: dict[str, Any] = {
    "id": "tool-1",
    "name": "list_notecards",
    "tool_type": "external_mcp",
    "description": "List them.",
    "json_schema": {"name": "list_notecards", "parameters": {"type": "object"}},
    "tags": ["mcp:han-solo"],
    "metadata_": {"mcp": {"server_name": "han-solo", "server_id": "mcp_server-1"}},
}
BLOCK: dict[str, Any] = {
    "id": "block-1",
    "label": "open_threads",
    "value": "",
    "limit": 5000,
    "read_only": None,
    "description": None,
}
AGENT: dict[str, Any] = {
    "id": "agent-1",
    "name": "ren",
    "agent_type": "letta_v1_agent",
    "system": "You are Ren.",
    "llm_config": {"model": "m", "context_window": 30000, "a_field_of_tomorrow": [1]},
    "embedding": None,
    "tools": [TOOL],
    "blocks": [BLOCK],
    "tags": ["han-solo"],
    "tool_rules": [{"type": "exit_loop", "tool_name": "x"}],
    "something_new": {"ignored": True},
}


def test_an_agent_carries_its_tools_blocks_and_tags() -> None:
    agent = views.parse_agent(AGENT)
    assert [tool.name for tool in agent.tools] == ["list_notecards"]
    assert agent.block("open_threads") == views.BlockView(
        id="block-1", label="open_threads", value="", limit=5000, read_only=False, description=""
    )
    assert agent.block("absent") is None
    assert agent.tool("absent") is None
    assert agent.tags == ("han-solo",)
    assert agent.tool_rules == ({"type": "exit_loop", "tool_name": "x"},)


def test_every_field_of_the_llm_config_is_carried() -> None:
    assert views.parse_agent(AGENT).llm_config == AGENT["llm_config"]


@pytest.mark.parametrize("field", ["id", "name", "agent_type", "llm_config", "tools", "blocks"])
def test_a_missing_field_of_an_agent_is_named(field: str) -> None:
    body = {key: value for key, value in AGENT.items() if key != field}
    with pytest.raises(LettaRefused, match=f"no '{field}'"):
        views.parse_agent(body)


@pytest.mark.parametrize("field", ["id", "name", "tool_type"])
def test_a_missing_field_of_a_tool_is_named(field: str) -> None:
    with pytest.raises(LettaRefused, match=f"no '{field}'"):
        views.parse_tool({**TOOL, field: None})


@pytest.mark.parametrize("field", ["id", "label", "value", "limit"])
def test_a_missing_field_of_a_block_is_named(field: str) -> None:
    with pytest.raises(LettaRefused, match=f"no '{field}'"):
        views.parse_block({**BLOCK, field: None})


def test_a_field_of_the_wrong_type_is_named() -> None:
    with pytest.raises(LettaRefused, match="a str as 'limit'"):
        views.parse_block({**BLOCK, "limit": "5000"})


@pytest.mark.parametrize("answer", [[], "agent", None])
def test_an_answer_of_another_shape_is_refused(answer: object) -> None:
    with pytest.raises(LettaRefused, match="where the agent should be"):
        views.parse_agent(answer)


def test_the_owner_of_a_tool_is_read_from_its_metadata() -> None:
    tool = views.parse_tool(TOOL)
    assert (tool.mcp_server, tool.mcp_server_id) == ("han-solo", "mcp_server-1")


def test_the_owner_of_a_tool_without_metadata_is_read_from_its_tag() -> None:
    tool = views.parse_tool({**TOOL, "metadata_": None, "tags": ["other", "mcp:han-solo"]})
    assert (tool.mcp_server, tool.mcp_server_id) == ("han-solo", None)


@pytest.mark.parametrize("tool_type", ["custom", "letta_memory_core"])
def test_a_row_that_was_taken_over_has_no_owner_any_more(tool_type: str) -> None:
    tool = views.parse_tool({**TOOL, "tool_type": tool_type})
    assert tool.mcp_server is None
    assert tool.is_letta_builtin == (tool_type == "letta_memory_core")


def test_a_token_is_parsed_without_bearer_and_is_not_in_the_repr() -> None:
    server = views.parse_mcp_server(
        {
            "id": "mcp_server-1",
            "server_name": "han-solo",
            "mcp_server_type": "streamable_http",
            "server_url": "https://bridge.example/mcp",
            "auth_token": "Bearer hs_abc_secret",
        }
    )
    assert server.token == "hs_abc_secret"
    assert "secret" not in repr(server)


def test_memory_text_is_not_in_a_repr() -> None:
    assert "You are Ren" not in repr(views.parse_agent(AGENT))
    assert "words" not in repr(views.parse_block({**BLOCK, "value": "words"}))


def test_a_model_without_a_maximum_has_its_window_as_maximum() -> None:
    model = views.parse_model({"handle": "p/m", "name": "m", "context_window": 30000})
    assert model.max_context_window == 30000
