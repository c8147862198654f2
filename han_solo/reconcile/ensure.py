"""``ensure_ren_tools``: bring the agent in line with its declaration, or say why not.

The same code for every bridge start, ``sync-tools`` and ``POST /api/admin/sync-mcp-tools``. The
states are read under the lock and the plan is carried out at once, so the brakes hold for what is
there at that moment, whatever a plan shown to someone earlier said.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from .. import logs
from ..errors import HanSoloError, PlanRefused
from .apply import apply_plan
from .diff import diff
from .identity import ensure_agent
from .journal import hold_lock
from .model import Consent, Desired, Observed
from .plan import Plan, Step, plan_json
from .services import ReconcileServices
from .switch.settle import settle

_log = logs.get("reconcile")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a sync did. ``remaining`` is the plan for what is there now: findings, no steps."""

    agent_id: str
    run_id: uuid.UUID | None
    plan: Plan
    remaining: Plan
    duration_ms: int

    @property
    def in_sync(self) -> bool:
        return self.remaining.in_sync

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "agent_id": self.agent_id,
            "run_id": None if self.run_id is None else str(self.run_id),
            "in_sync": self.in_sync,
            "plan": plan_json(self.plan),
            "remaining": plan_json(self.remaining),
            "duration_ms": self.duration_ms,
        }


async def make_plan(
    services: ReconcileServices, agent_id: str, *, consent: Collection[Consent] = ()
) -> Plan:
    """Return what a sync would do now, and change nothing.

    Raises:
        AgentGone: a confirmed 404 of the agent.
        LettaError: Letta did not answer everything.
    """
    desired = services.build_desired()
    observed = await services.observe(agent_id, desired.server.token)
    return diff(desired, observed, consent=consent)


async def ensure_ren_tools(
    services: ReconcileServices,
    *,
    prune: bool = False,
    detach_builtin_memory: bool = False,
    expected: Plan | None = None,
    only: Callable[[Step], bool] | None = None,
) -> Outcome:
    """Bring the agent in line with its declaration.

    Args:
        services: what to work on.
        prune: detach tools that are not declared; they are never deleted.
        detach_builtin_memory: detach Letta's own memory tools, which undo block writes.
        expected: the plan that someone agreed to; another one is refused.
        only: which of the steps to take; all of them when left out. The others stay in
            ``Outcome.remaining``.

    Raises:
        PlanRefused: a brake held (``bridge_cold``, ``bridge_differs``, ``name_collision``,
            ``server_name_taken``), or the plan is no longer the expected one (``plan_changed``);
            nothing was changed.
        AgentGone: a confirmed 404 of the agent.
        WriteNotVerified: a step was accepted and can not be read back.
        HanSoloError: a step failed; the journal says which, and running again finishes.
    """
    started = time.monotonic()
    consent: list[Consent] = []
    if prune:
        consent.append("prune")
    if detach_builtin_memory:
        consent.append("detach_builtin_memory")
    agent_id = await ensure_agent(services)
    desired = services.build_desired()
    async with hold_lock(services.db, services.spec.name, clock=services.clock):
        await settle(services.gateway, services.switches)
        observed = await services.observe(agent_id, desired.server.token)
        plan = diff(desired, observed, consent=consent)
        _refuse(plan, expected, agent_id)
        if only is not None:
            plan = replace(plan, steps=tuple(step for step in plan.steps if only(step)))
        run_id = None
        if plan.steps:
            run_id, observed = await _carry_out(services, plan, desired, observed)
        await services.known.note_seen(
            observed, desired.server.name, [block.label for block in desired.spec.blocks]
        )
    outcome = Outcome(
        agent_id=agent_id,
        run_id=run_id,
        plan=plan,
        remaining=diff(desired, observed, consent=consent),
        duration_ms=round((time.monotonic() - started) * 1000),
    )
    _log.info(
        "reconcile.plan_applied" if plan.steps else "reconcile.state_compared",
        agent_id=agent_id,
        run_id=None if run_id is None else str(run_id),
        steps=len(plan.steps),
        findings=len(plan.findings),
        in_sync=outcome.in_sync,
        duration_ms=outcome.duration_ms,
    )
    return outcome


def _refuse(plan: Plan, expected: Plan | None, agent_id: str) -> None:
    if plan.refusal:
        _log.warning("reconcile.plan_refused", agent_id=agent_id, reason=plan.refusal.reason)
        raise PlanRefused(plan.refusal.sentence, reason=plan.refusal.reason, hint=plan.refusal.hint)
    if expected is not None and plan.steps != expected.steps:
        raise PlanRefused(
            "What is to be done has changed since the plan was shown.",
            reason="plan_changed",
            hint="Nothing was changed; run again to see the new plan.",
        )


async def _carry_out(
    services: ReconcileServices, plan: Plan, desired: Desired, observed: Observed
) -> tuple[uuid.UUID, Observed]:
    agent_id = observed.agent.id
    run_id = await services.journal.open_run(agent_id, plan_json(plan))
    try:
        after = await apply_plan(
            plan,
            desired,
            observed,
            gateway=services.gateway,
            remember=services.known,
            note=lambda records: services.journal.note_steps(run_id, records),
        )
    except HanSoloError as error:
        _log.warning(
            "reconcile.run_failed",
            agent_id=agent_id,
            run_id=str(run_id),
            error=type(error).__name__,
        )
        await _close_failed(services, run_id, error)
        raise
    await services.journal.close_run(run_id, None)
    return run_id, after


async def _close_failed(
    services: ReconcileServices, run_id: uuid.UUID, error: HanSoloError
) -> None:
    """Close the run in the journal; when even that fails the first error is the one to show."""
    try:
        await services.journal.close_run(run_id, str(error))
    except HanSoloError as second:
        _log.warning("reconcile.journal_failed", run_id=str(run_id), error=type(second).__name__)
