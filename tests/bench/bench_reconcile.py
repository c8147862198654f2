"""What a sync of 70 tools costs on a real Letta, beside the bare minimum in the same run.

The bare minimum is one read of the agent and one list of the tools, through the same client, at the
same time. A sync without drift makes four requests: three of Letta and one of the bridge.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tests.integration.reconcile_fixtures import Lab, build_tools, open_lab
from tests.servers import fresh_database, make_actor, run_all

from .harness import Goal, compare_ms

TOOLS = 70
REPEATS = 40
GOALS = {
    "noop_requests": Goal(max=4),
    "noop_ratio": Goal(max=2.0),
    "first_registrations": Goal(max=1),
    "first_attaches": Goal(max=TOOLS),
    "changed_tool_calls": Goal(max=2),
}


async def measure(_options: Any) -> dict[str, float]:
    """Measure the first sync, a changed tool, and syncs without drift."""
    async with run_all() as (postgres, letta), fresh_database(postgres) as url:
        actor = await make_actor(letta)
        async with open_lab(letta, actor, url, tools=build_tools(TOOLS)) as lab:
            return await _measure(lab)


async def _measure(lab: Lab) -> dict[str, float]:
    began = time.perf_counter()
    await lab.sync()
    first_s = time.perf_counter() - began
    first = list(lab.transport.sent)

    noop = await _count_noop(lab)
    changed = await _count_changed_tool(lab, noop)
    agent_id = await lab.agent_id()

    async def bare() -> None:
        await asyncio.gather(lab.gateway.fetch_agent(agent_id), lab.gateway.fetch_tools())

    spent = await compare_ms({"bare": bare, "noop": lab.sync}, repeats=REPEATS)
    return {
        "noop_requests": noop,
        "noop_ms": spent["noop"],
        "bare_ms": spent["bare"],
        "noop_ratio": spent["noop"] / spent["bare"],
        "first_s": first_s,
        "first_registrations": sum(path == "/v1/mcp-servers/" for m, path in first if m == "POST"),
        "first_attaches": sum("/tools/attach/" in path for _, path in first),
        "changed_tool_calls": changed,
    }


async def _count_noop(lab: Lab) -> int:
    lab.transport.sent.clear()
    lab.stub.tokens_seen.clear()
    await lab.sync()
    return len(lab.transport.sent) + len(lab.stub.tokens_seen)


async def _count_changed_tool(lab: Lab, noop: int) -> int:
    """Return the calls that one changed tool costs beside those of a sync without drift."""
    lab.declare((*build_tools(TOOLS)[:-1], build_tools(TOOLS, "Does it otherwise.")[-1]))
    lab.transport.sent.clear()
    outcome = await lab.sync()
    assert outcome.in_sync
    calls_of_noop = noop - 1  # one of them goes to the bridge
    return len(lab.transport.sent) - calls_of_noop
