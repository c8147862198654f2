"""Bring a switch of a dead process to its end, and end the canaries that were left over.

Who calls: every sync (so every start of the bridge and of the daemon) and every switch, under the
agent's reconcile lock: an open switch is then one that nobody carries out any more. One whose
canary had answered is finished; any other is undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import logs
from ...errors import AgentGone, HanSoloError, ReconcileBusy
from ..journal import hold_lock
from .journal import SwitchJournal, SwitchOutcome, SwitchRow
from .returning import put_back
from .services import SettleGateway

if TYPE_CHECKING:
    from ..services import ReconcileServices

_log = logs.get("switch")

_DIED = "its process ended in the middle"


@dataclass(frozen=True, slots=True)
class Settled:
    """What was found open, and what came of it."""

    switch: SwitchRow
    outcome: SwitchOutcome


async def settle(gateway: SettleGateway, journal: SwitchJournal) -> Settled | None:
    """Settle what a dead process left; under the lock. Two reads of Postgres when there is nothing.

    Raises:
        HanSoloError: Letta or Postgres is away; the next start tries again.
    """
    row = await journal.load_open()
    settled = None
    if row is not None:
        outcome = await _settle(gateway, journal, row)
        _log.warning(
            "switch.settled",
            switch_id=str(row.switch_id),
            agent_id=row.agent_id,
            new=row.to_handle,
            outcome=outcome,
        )
        settled = Settled(row, outcome)
        await _end_canaries(gateway, journal, row.agent_id)
    for canary_id in await journal.load_left_canaries():
        await _end(gateway, journal, canary_id)
    return settled


async def settle_left(services: ReconcileServices) -> Settled | None:
    """Settle what a dead process left, unless somebody is at work; for who has no lock.

    Raises:
        HanSoloError: Letta or Postgres is away; try again.
    """
    journal = services.switches
    if await journal.load_open() is None and not await journal.load_left_canaries():
        return None
    try:
        async with hold_lock(services.db, services.spec.name, clock=services.clock, wait_s=0.0):
            return await settle(services.gateway, journal)
    except ReconcileBusy:  # whoever holds the lock has settled it, or is the switch itself
        return None


async def _settle(gateway: SettleGateway, journal: SwitchJournal, row: SwitchRow) -> SwitchOutcome:
    try:
        view = await gateway.fetch_agent(row.agent_id)
    except AgentGone:
        await journal.close(row.switch_id, "abandoned", f"{_DIED}, and the agent is gone")
        return "abandoned"
    if view.llm_config not in (row.old_config, row.new_config):
        await journal.close(
            row.switch_id,
            "abandoned",
            f"{_DIED}, and somebody changed the model's settings since; they were left alone",
        )
        return "abandoned"
    steps = await journal.load_steps(row.switch_id)
    answered = any(step.step == "canary" and step.outcome == "done" for step in steps)
    attached = {tool.id for tool in view.tools}
    if answered and view.llm_config == row.new_config and attached >= set(row.tool_ids):
        await journal.close(row.switch_id, "done")
        return "done"
    await put_back(
        gateway,
        journal,
        row.switch_id,
        agent_id=row.agent_id,
        old_config=row.old_config,
        tool_ids=row.tool_ids,
    )
    await journal.close(row.switch_id, "undone", f"{_DIED}; the old configuration is back")
    return "undone"


async def _end_canaries(gateway: SettleGateway, journal: SwitchJournal, agent_id: str) -> None:
    """End canaries by their tag: the process may have died before it noted one."""
    for canary_id in await gateway.find_canaries(agent_id):
        await _end(gateway, journal, canary_id)


async def _end(gateway: SettleGateway, journal: SwitchJournal, canary_id: str) -> None:
    """End one; that it could not be ended keeps nobody from working."""
    try:
        await gateway.end_canary(canary_id)
        await journal.note_ended(canary_id)
    except HanSoloError as error:
        _log.warning("switch.canary_left", canary_id=canary_id, error=type(error).__name__)
