"""A tool that would message the agent which waits for it: refused at load and in the act."""

from __future__ import annotations

import ast
import asyncio
import threading
from pathlib import Path

import pytest

from han_solo import callbacks
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
        (tools / name).parent.mkdir(mode=0o755, exist_ok=True)
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
        {"body": 'from importlib import import_module\n    import_module("letta_client")'},
        {"imports": "from ._box.inner import x", "_box/__init__": "",
            "_box/inner": "import letta_client\nx = 1\n"},
        {"imports": "from . import _help", "_help": "from ._more import x\n", "_more":
            "from han_solo.letta.gateway import LettaGateway as x\n"},
    ],
)  # fmt: skip
def test_a_tool_of_the_agents_set_with_a_way_to_message_is_refused_at_load(tmp_path, fault):
    with pytest.raises(DeclarationError) as refused:
        write(tmp_path, **fault)

    assert "ask_ren stands in the agent's set" in refused.value.message
    assert "deadlock" in refused.value.message


def test_a_helper_from_elsewhere_is_read_too(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "helper_of_ours.py").write_text("def x():\n    import letta_client\n")
    monkeypatch.syspath_prepend(elsewhere)

    with pytest.raises(DeclarationError) as refused:
        write(tmp_path, body="import helper_of_ours")

    assert f"{elsewhere}/helper_of_ours.py:2 imports letta_client" in refused.value.message


def test_a_type_is_no_way_to_message(tmp_path):
    imports = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from han_solo.turns.model import Reply"
    )

    assert write(tmp_path, imports=imports).get("ask_ren")


def test_no_module_that_has_a_gateway_is_missing_among_the_senders():
    engine = Path(callbacks.__file__).parent
    ways = ("letta_client", "han_solo.letta.gateway", "han_solo.letta.link", "han_solo.turns")
    missing = []
    for path in sorted(engine.rglob("*.py")):
        inside = ".".join(("han_solo", *path.relative_to(engine).with_suffix("").parts))
        if inside.startswith((*callbacks.SENDERS, "han_solo.letta.")):
            continue
        source = resolve_relative(path.read_text(), inside)
        missing += [(inside, name) for name in callbacks.list_imports(source)
            if name.startswith(ways)]  # fmt: skip
    assert missing == []


def resolve_relative(source, inside):
    """Write relative imports of the engine as absolute ones."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = inside.split(".")[: -node.level]
            node.module = ".".join([*parts, node.module] if node.module else parts)
            node.level = 0
    return ast.unparse(tree)


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


async def test_a_thread_that_the_call_started_may_not_message_the_agent_that_waits():
    refused = []

    def message():
        try:
            refuse_callback("agent-1")
        except CallbackRefused as error:
            refused.append(error.message)

    with serving_agent("ask_ren", "agent-1"), serving_agent("ask_ren", "agent-1"):
        threads = [threading.Thread(target=message), threading.Thread(target=message)]
        for thread in threads:
            thread.start()
            thread.join()
    assert len(refused) == 2
    assert "agent-1 waits for the tool ask_ren" in refused[0]
    refuse_callback("agent-1")


async def test_others_may_message_another_agent_meanwhile():
    calls = asyncio.Event(), asyncio.Event()

    async def serve():
        with serving_agent("ask_ren", "agent-1"):
            calls[0].set()
            await calls[1].wait()

    serving = asyncio.create_task(serve())
    await calls[0].wait()
    refuse_callback()
    refuse_callback("agent-2")
    with pytest.raises(CallbackRefused):
        refuse_callback("agent-1")
    calls[1].set()
    await serving


def test_outside_a_tool_call_nothing_is_refused():
    with serving_agent("ask_ren"):
        pass
    refuse_callback()
