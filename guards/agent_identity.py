"""The guard that asks whether the agent is still the one that everything here is about."""

from __future__ import annotations

from han_solo import CheckContext, Finding, guard
from han_solo.errors import AgentGone

from ._timer_copies import find_timer_copies


@guard(every_s=60, incident="agent-orphaned")
async def agent_identity(context: CheckContext) -> tuple[Finding, ...]:
    """Find an agent that is gone, and copies of its id that differ.

    A critical finding stops every remedy: what would be repaired may be another agent.
    """
    found: list[Finding] = []
    in_settings = context.stored_ids.from_settings
    in_database = await context.stored_ids.from_database()
    if in_settings and in_database and in_settings != in_database:
        found.append(
            Finding(
                key="copies_differ",
                summary=f"HAN_SOLO_AGENT_ID is {in_settings}, the database knows "
                f"{context.agent_name!r} as {in_database}.",
                hint="Unset HAN_SOLO_AGENT_ID, or run sync-tools to take the other agent over.",
                severity="critical",
                detail={"settings": in_settings, "database": in_database},
            )
        )
    if in_database is None:
        found.append(
            Finding(
                key="not_stored",
                summary=f"The database has no id for {context.agent_name!r} any more.",
                hint="Run sync-tools: it finds the agent by its tag, or makes it.",
                severity="critical",
            )
        )
    timers = await context.timers()
    if timers is not None:
        found += find_timer_copies(timers, context.agent_id)
    try:
        await context.agent()
    except AgentGone as error:
        found.append(
            Finding(
                key="gone",
                summary=error.message,
                hint=error.hint or "",
                severity="critical",
                detail={"agent_id": context.agent_id},
            )
        )
        return tuple(found)
    tag = context.spec.tag
    others = [
        agent.id
        for agent in await context.letta.find_agents(context.agent_name)
        if agent.id != context.agent_id and tag in agent.tags
    ]
    if others:
        found.append(
            Finding(
                key="namesakes",
                summary=f"Letta has {len(others) + 1} agents that han-solo made as "
                f"{context.agent_name!r}; {context.agent_id} is the one that is kept.",
                hint="Somebody may be speaking with a copy: rename it in Letta, or take its tag "
                f"{tag} off.",
                detail={"others": others},
            )
        )
    return tuple(found)
