from __future__ import annotations

import json

import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from structlog.testing import capture_logs

from han_solo.bridge import projection
from han_solo.bridge.replies import MAX_REPLY_CHARS
from han_solo.context import MemoryContext
from han_solo.declare import ToolSpec, spec_of
from han_solo.principals import AUDIENCES
from han_solo.registry import ListedTool

from . import bridge_fakes


async def bind(spec: ToolSpec) -> MemoryContext:
    return MemoryContext(
        principal=bridge_fakes.principal("agent"),
        notecards=None,  # type: ignore[arg-type]
        passages=None,  # type: ignore[arg-type]
        transcripts=None,  # type: ignore[arg-type]
    )


def client(specs=bridge_fakes.SPECS) -> Client:
    tools = [projection.build_tool(spec, bind) for spec in specs]
    return Client(FastMCP("test", tools=tools, dereference_schemas=False, mask_error_details=True))


async def call(name: str, **arguments) -> str:
    async with client() as session:
        result = await session.call_tool(name, arguments)
    assert result.structured_content is None
    [block] = result.content
    return block.text


async def test_context_is_not_in_the_schema_and_args_are():
    async with client([spec_of(bridge_fakes.echo)]) as session:
        [tool] = await session.list_tools()
    schema = tool.input_schema
    assert list(schema["properties"]) == ["text", "shade", "times"]
    assert schema["required"] == ["text"]
    assert schema["properties"]["text"] == {
        "type": "string",
        "maxLength": 20,
        "description": "What to say, at most 20 characters.",
    }
    assert "$ref" not in json.dumps(schema)
    assert schema["properties"]["shade"]["enum"] == ["light", "dark"]
    assert tool.output_schema is None


async def test_description_is_the_docstring_without_args_and_raises():
    async with client([spec_of(bridge_fakes.echo)]) as session:
        [tool] = await session.list_tools()
    assert tool.description == (
        "Say the text again.\n\nUse it when a text must be heard twice.\n\n"
        "Returns:\n    The caller's name, kind and agent, and the text."
    )


@pytest.mark.parametrize(
    ("function", "read_only", "destructive"),
    [
        (bridge_fakes.echo, True, False),
        (bridge_fakes.make_card, False, False),
        (bridge_fakes.erase_all, False, True),
    ],
)
async def test_hints_follow_from_the_effect(function, read_only, destructive):
    async with client([spec_of(function)]) as session:
        [tool] = await session.list_tools()
    assert tool.annotations.read_only_hint is read_only
    assert tool.annotations.destructive_hint is destructive


async def test_list_without_a_server_is_the_live_one():
    registry = bridge_fakes.registry()
    for kind in AUDIENCES:
        async with client(registry.shown_to(kind)) as session:
            live = {
                ListedTool(tool.name, tool.description, tool.input_schema).name: tool
                for tool in await session.list_tools()
            }
        computed = projection.list_tools(registry, kind)
        assert [tool.name for tool in computed] == sorted(live)
        for tool in computed:
            assert tool.description == live[tool.name].description
            assert tool.input_schema == live[tool.name].input_schema


def test_list_leaves_out_what_the_scopes_do_not_reach():
    listed = projection.list_tools(bridge_fakes.registry(), "agent", {"memory:read"})
    assert {tool.name for tool in listed} == {"echo", "find_missing", "break_down"}


async def test_a_string_is_replied_as_it_is():
    assert await call("echo", text="hi", shade="dark") == "the-agent agent None: hi dark"


async def test_a_value_is_replied_as_json():
    assert json.loads(await call("make_card", title="one")) == {
        "id": "00000000-0000-0000-0000-000000000007",
        "created_at": "2026-01-02T00:00:00Z",
        "title": "one ü",
        "shades": ["dark"],
    }


async def test_a_reply_at_the_limit_is_given_whole():
    assert len(await call("write_long", length=MAX_REPLY_CHARS)) == MAX_REPLY_CHARS


async def test_a_reply_over_the_limit_is_refused_and_not_cut():
    with pytest.raises(ToolError) as caught:
        await call("write_long", length=MAX_REPLY_CHARS + 1)
    assert "40,001 characters, more than the 40,000" in str(caught.value)
    assert "stays written" in str(caught.value)


async def test_an_error_of_ours_is_said_with_its_hint():
    with pytest.raises(ToolError, match=r"^There is no card 7\. List them with list_cards\.$"):
        await call("find_missing")


async def test_a_bug_is_logged_under_an_id_and_its_text_is_not_said():
    with capture_logs() as logged, pytest.raises(ToolError) as caught:
        await call("break_down")
    [entry] = [line for line in logged if line["event"] == "bridge.fault_raised"]
    assert entry["fault"] in str(caught.value)
    assert isinstance(entry["exc_info"], RuntimeError)
    assert "hunter2" not in str(caught.value)
    assert "hs_abcdefgh" not in str(caught.value)
