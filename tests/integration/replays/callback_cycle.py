"""Tools that call back into the queue of the agent which waits for them: two days of outages."""

from __future__ import annotations

from tests.integration.guard_fixtures import GuardWorld

CALLBACK = '''
def ask_ren(question: str) -> str:
    """Ask Ren.

    Args:
        question: what.
    """
    import requests
    url = "http://localhost:8283/v1/agents/agent-1/messages"
    return requests.post(url, json={"messages": []}).text
'''

INJECTED = '''
def tell_ren(text: str) -> str:
    """Tell Ren, through the client that Letta puts into every sandbox.

    Args:
        text: what.
    """
    client.agents.messages.create(agent_id="agent-1", messages=[])
    return "told"
'''

HARMLESS = '''
def count_messages(path: str) -> str:
    """Count messages in a file.

    Args:
        path: which.
    """
    return str(open(path + "/messages").read().count("From "))
'''


async def replay(world: GuardWorld) -> None:
    assert await world.check("callback_cycle") == ()
    world.callback_tools("tool_02")
    for source in (CALLBACK, INJECTED, HARMLESS):
        await world.lab.gateway.attach_tool(world.agent_id, await world.make_tool(source))
    before = await world.lab.attached()

    seen = await world.run("callback_cycle", repair=False)
    repaired = await world.run("callback_cycle")

    assert {row.key: row.severity for row in seen.findings} == {
        "tool_02": "critical",
        "ask_ren": "warning",
        "tell_ren": "warning",
    }
    assert {row.key for row in repaired.findings} == {"ask_ren", "tell_ren"}
    assert repaired.remedy is not None
    assert "tool_02" in repaired.remedy.what
    assert await world.lab.attached() == {n: i for n, i in before.items() if n != "tool_02"}
    assert before["tool_02"] in {tool.id for tool in await world.lab.gateway.fetch_tools()}
