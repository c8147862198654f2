"""The way back: the old configuration as it was, to the byte, and the tools that were attached.

Who calls: ``run`` when a step or the canary failed, ``settle`` for a switch of a dead process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from ...letta.views import AgentView
from ..verify import differs
from .journal import SwitchJournal
from .services import SettleGateway


async def put_back(
    gateway: SettleGateway,
    journal: SwitchJournal,
    switch_id: UUID,
    *,
    agent_id: str,
    old_config: Mapping[str, object],
    tool_ids: Sequence[str],
    is_unsure: bool = False,
) -> None:
    """Put back what differs, each in a PATCH of its own, and read it back.

    Args:
        gateway: Letta.
        journal: the agent's journal.
        switch_id: the switch that is undone.
        agent_id: the agent.
        old_config: as it was before.
        tool_ids: what was attached before.
        is_unsure: a PATCH got no answer and may still be on its way, so the old configuration is
            sent even if it is there.

    Raises:
        WriteNotVerified: it was accepted and can not be read back.
        HanSoloError: Letta or Postgres is away.
    """
    view = await gateway.fetch_agent(agent_id)
    if is_unsure or view.llm_config != old_config:
        position = await journal.intend(switch_id, "config_back")
        view = await gateway.patch_llm_config(agent_id, old_config)
        same = view.llm_config == old_config
        await journal.finish(switch_id, position, {}, failed=not same)
        if not same:
            raise differs("the old configuration", "as it was", "another one")
    lost = set(tool_ids) - {tool.id for tool in view.tools}
    if lost:
        position = await journal.intend(switch_id, "tools_back")
        await put_tools(gateway, view, tool_ids)
        await journal.finish(switch_id, position, {"restored": sorted(lost)})


async def put_tools(gateway: SettleGateway, view: AgentView, tool_ids: Sequence[str]) -> None:
    """Attach what was attached before, in one PATCH of ``tool_ids`` alone.

    What somebody attached meanwhile stays.

    Raises:
        WriteNotVerified: it was accepted and can not be read back.
    """
    wanted = list(dict.fromkeys([*tool_ids, *(tool.id for tool in view.tools)]))
    after = await gateway.patch_tool_ids(view.id, wanted)
    found = {tool.id for tool in after.tools}
    if found != set(wanted):
        raise differs("the tools of before", f"{len(wanted)} tools", f"{len(found)} tools")


async def read_config(gateway: SettleGateway, agent_id: str) -> Mapping[str, object]:
    """Return the agent's configuration as it is now."""
    return (await gateway.fetch_agent(agent_id)).llm_config
