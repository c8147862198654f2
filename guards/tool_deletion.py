"""The guard against tools that vanish from Letta altogether."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from han_solo import CheckContext, Finding, HanSoloError, RemedyContext, guard
from han_solo.findings.snapshots import Attachment
from han_solo.reconcile.plan import AttachTool, RegisterServer, RegisterTool, UpdateServer

MEANT_AFTER: Final = timedelta(days=7)
"""A tool that can not be brought back and is gone for so long was deleted on purpose."""


@dataclass(frozen=True, slots=True)
class _Lost:
    """A tool that is gone, and the known agents that had it, by name."""

    name: str
    agents: Mapping[str, Attachment]


async def _bring_back(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    names = {finding.key for finding in findings}
    await context.apply(
        lambda step: isinstance(step, RegisterServer | UpdateServer | RegisterTool | AttachTool)
    )
    tools = {
        tool.name: tool
        for tool in await context.letta.fetch_tools()
        if tool.mcp_server == context.bridge_name
    }
    given: dict[str, int] = {}
    for agent_name, agent_id in (await context.snapshots.list_agents()).items():
        had = {attachment.tool_name for attachment in await context.snapshots.load(agent_id)}
        try:
            has = {tool.name for tool in (await context.letta.fetch_agent(agent_id)).tools}
            for name in sorted((names & had & tools.keys()) - has):
                await context.letta_writes.attach_tool(agent_id, tools[name].id)
            agent = await context.letta.fetch_agent(agent_id)
        except HanSoloError:  # one agent that is gone keeps no other from its tools
            continue
        await context.snapshots_writer.note(agent)
        given[agent_name] = len(names & {tool.name for tool in agent.tools})
    counts = ", ".join(f"{agent} {count}" for agent, count in sorted(given.items()))
    return f"Registered anew and attached by name, of {len(names)} that were gone: {counts}."


@guard(every_s=60, incident="mass-deletion", mode="repair", remedy=_bring_back)
async def tool_deletion(context: CheckContext) -> tuple[Finding, ...]:
    """Find tools that a known agent had, that it has no more and that Letta has no more either.

    Ours are registered anew and attached by name, for every known agent. Tools of others, and ours
    that are declared no more, are reported for a week: they can not be brought back from here.
    """
    ids = {tool.id for tool in await context.letta.fetch_tools()}
    lost: dict[str, dict[str, Attachment]] = {}
    for agent_name, agent_id in (await context.snapshots.list_agents()).items():
        gone = [a for a in await context.snapshots.load(agent_id) if a.tool_id not in ids]
        if not gone:
            continue
        try:
            has = {tool.name for tool in (await context.letta.fetch_agent(agent_id)).tools}
        except HanSoloError:  # its own guard, agent_identity, tells of an agent that is gone
            continue
        for attachment in gone:
            if attachment.tool_name not in has:
                lost.setdefault(attachment.tool_name, {})[agent_name] = attachment
    return tuple(
        finding
        for name, agents in sorted(lost.items())
        if (finding := _build(context, _Lost(name, agents)))
    )


def _build(context: CheckContext, lost: _Lost) -> Finding | None:
    attachments: Sequence[Attachment] = tuple(lost.agents.values())
    since = min((a.missing_since or context.now) for a in attachments)
    seen = max(a.seen_at for a in attachments)
    is_declared = lost.name in context.declared_tools
    if not is_declared and context.now - since > MEANT_AFTER:
        return None
    agents = ", ".join(sorted(lost.agents))
    return Finding(
        key=lost.name,
        summary=f"The tool {lost.name} was deleted from Letta; {agents} had it, last seen "
        f"{seen:%Y-%m-%d %H:%M:%S} UTC.",
        hint=_build_hint(context, attachments, is_declared=is_declared),
        severity="critical" if is_declared else "warning",
        detail={
            "agents": sorted(lost.agents),
            "tool_ids": sorted({a.tool_id for a in attachments}),
            "server": attachments[0].server,
            "last_seen_at": seen.isoformat(),
            "missing_since": since.isoformat(),
        },
    )


def _build_hint(
    context: CheckContext, attachments: Sequence[Attachment], *, is_declared: bool
) -> str:
    if is_declared:
        return "In mode repair it is registered anew and attached by name; by hand: sync-tools."
    if any(attachment.server == context.bridge_name for attachment in attachments):
        return "No file in tools/ declares it any more: put one back, or wait a week."
    return "It is not han-solo's: whoever made it has to make it again."
