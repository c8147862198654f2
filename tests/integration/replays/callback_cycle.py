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


async def replay(world: GuardWorld) -> None:
    assert await world.check("callback_cycle") == ()
    world.callback_tools("tool_02")
    theirs = await world.make_tool(CALLBACK)
    await world.lab.gateway.attach_tool(world.agent_id, theirs)
    before = await world.lab.attached()

    seen = await world.run("callback_cycle", repair=False)
    repaired = await world.run("callback_cycle")

    assert {row.key: row.severity for row in seen.findings} == {
        "tool_02": "critical",
        "ask_ren": "warning",
    }
    assert {row.key for row in repaired.findings} == {"ask_ren"}
    assert repaired.remedy is not None
    assert "tool_02" in repaired.remedy.what
    assert await world.lab.attached() == {n: i for n, i in before.items() if n != "tool_02"}
    assert before["tool_02"] in {tool.id for tool in await world.lab.gateway.fetch_tools()}
