"""The guard against tools that call back into the queue of the agent that calls them."""

from __future__ import annotations

import re
from typing import Final

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.letta.views import ToolView

_LETTA_OWN: Final = frozenset(
    """
    send_message_to_agent_and_wait_for_reply send_message_to_agent_async
    send_message_to_agents_matching_tags
    """.split()
)
"""Letta's tools that message agents, the caller among them."""

_MESSAGES: Final = re.compile(r"/messages\b|\.messages\.(?:create|stream)|send_message_to_agent")
_LETTA: Final = re.compile(
    r"letta_client|/v1/agents|LETTA_BASE_URL|localhost:8283|\bclient\.agents\b"
)
"""``client``: Letta puts its SDK's client into the sandbox of every custom tool, unasked."""


async def _detach(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    ours = {finding.key for finding in findings if finding.detail["is_ours"]}
    done: list[str] = []
    for tool in (await context.agent()).tools:
        if tool.name in ours:
            await context.letta_writes.detach_tool(context.agent_id, tool.id)
            await context.snapshots_writer.forget(context.agent_id, tool.name)
            done.append(tool.name)
    if not done:
        return "Nothing of ours is among them, so nothing was detached."
    return f"Detached, not deleted: {', '.join(sorted(done))}."


@guard(every_s=60, incident="callback-deadlock", mode="repair", remedy=_detach)
async def callback_cycle(context: CheckContext) -> tuple[Finding, ...]:
    """Find attached tools that message the agent while it waits for them.

    Known are our own tools that may message it, Letta's tools that message agents, and custom tools
    whose code speaks to Letta's messages. What another MCP server does can not be seen from here.
    """
    found: list[Finding] = []
    for tool in (await context.agent()).tools:
        why = _find_reason(context, tool)
        if why is None:
            continue
        is_ours = tool.mcp_server == context.bridge_name
        found.append(
            Finding(
                key=tool.name,
                summary=f"The attached tool {tool.name} {why}; the agent waits for it meanwhile, "
                "and the turns push each other out of its context.",
                hint="In mode repair it is detached; it stays in Letta."
                if is_ours
                else "Detach it in Letta; it is not han-solo's.",
                severity="critical" if is_ours else "warning",
                detail={"tool_id": tool.id, "tool_type": tool.tool_type, "is_ours": is_ours},
            )
        )
    return tuple(found)


def _find_reason(context: CheckContext, tool: ToolView) -> str | None:
    if tool.mcp_server == context.bridge_name:
        return "may message the agent" if tool.name in context.callback_tools else None
    if tool.name in _LETTA_OWN and tool.is_letta_builtin:
        return "messages agents, itself among them"
    if tool.tool_type == "custom" and _MESSAGES.search(tool.source_code):
        return "speaks to Letta's messages in its code" if _LETTA.search(tool.source_code) else None
    return None
