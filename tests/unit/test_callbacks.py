"""A tool that would message the agent which waits for it: refused at load and in the act."""

from __future__ import annotations

import asyncio

import pytest

from han_solo.errors import CallbackRefused, DeclarationError
from han_solo.letta.gateway import LettaGateway
from han_solo.loader import load_registry
from han_solo.serving import refuse_callback, serving_agent
from tests.floors import OpenFloor

TOOL = '''\
"""A tool."""

from han_solo import MemoryContext, tool
{imports}


@tool(effect="read"{more})
async def ask_ren(context: MemoryContext) -> str:
    """Ask."""
    {body}
    return ""
'''


def write(tmp_path, *, imports="", body="", more="", **helpers):
    tools = tmp_path / "tools"
    tools.mkdir(mode=0o755)
    (tools / "asking.py").write_text(TOOL.format(imports=imports, body=body, more=more))
    for name, text in helpers.items():
        (tools / f"{name}.py").write_text(text)
    return load_registry([tmp_path])


@pytest.mark.parametrize(
    "fault",
    [
        {"imports": "import letta_client"},
        {"imports": "from letta_client import Letta"},
        {"imports": "from han_solo.letta.gateway import LettaGateway"},
        {"imports": "from han_solo.letta import gateway"},
        {"imports": "from han_solo.turns.service import Turns"},
        {"imports": "import han_solo.turns.service as t"},
        {"body": "import letta_client"},
        {"body": 'url = f"http://127.0.0.1:8283/v1/agents/{context}/messages"'},
        {"imports": "from ._help import x", "_help": "import letta_client\nx = 1\n"},
        {"imports": "from . import _help", "_help": "from ._more import x\n", "_more":
            "from han_solo.letta.gateway import LettaGateway as x\n"},
    ],
)  # fmt: skip
def test_a_tool_of_the_agents_set_with_a_way_to_message_is_refused_at_load(tmp_path, fault):
    with pytest.raises(DeclarationError) as refused:
        write(tmp_path, **fault)

    assert "ask_ren stands in the agent's set" in refused.value.message
    assert "deadlock" in refused.value.message


def test_an_operators_tool_may_import_what_sends(tmp_path):
    registry = write(
        tmp_path, imports="from han_solo.turns.service import Turns", more=', audience="operator"'
    )

    assert registry.get("ask_ren")


def test_the_shipped_tools_have_no_way_to_message():
    assert load_registry().shown_to("agent")


async def test_a_message_from_inside_a_tool_call_of_an_agent_is_refused_before_it_is_sent():
    async with LettaGateway.connect("http://letta.test", None) as gateway:
        with serving_agent("ask_ren"), pytest.raises(CallbackRefused) as refused:
            await gateway.send_message(OpenFloor("agent-1"), "hello")

    assert "The tool ask_ren tried to message an agent" in refused.value.message


async def test_what_the_call_started_is_refused_too():
    with serving_agent("ask_ren"):
        later = asyncio.create_task(asyncio.to_thread(refuse_callback))
    with pytest.raises(CallbackRefused):
        await later


def test_outside_a_tool_call_nothing_is_refused():
    with serving_agent("ask_ren"):
        pass
    refuse_callback()
