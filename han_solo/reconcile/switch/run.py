"""Carry a switch out: two plans, a canary, and the old configuration back on any mismatch.

Under the agent's reconcile lock, so that no sync and no other switch is at work meanwhile. Each
step is journaled before it is taken: what a killed process leaves, ``settle`` brings to its end.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ... import logs
from ...errors import (
    HanSoloError,
    LettaUnavailable,
    PlanRefused,
    ReconcileBusy,
    SwitchFailed,
    SwitchUnsettled,
    WriteNotVerified,
)
from ..journal import hold_lock
from ..verify import differs
from .canary import Trial, try_model
from .plan import SwitchPlan
from .preflight import Wanted, make_switch_plan
from .returning import put_back, put_tools, read_config
from .services import SwitchServices
from .settle import settle

LOCK_WAIT_S: Final = 10.0
"""A sync takes a second or two; whoever waits at a terminal for a switch is told instead."""

_log = logs.get("switch")


@dataclass(frozen=True, slots=True)
class Switched:
    """A switch that went through; ``switch_id`` is None when there was nothing to do.

    ``restored`` are the names of tools that the first plan lost and the second put back.
    """

    plan: SwitchPlan
    switch_id: UUID | None
    trial: Trial | None
    restored: tuple[str, ...]
    duration_ms: int

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "switch_id": None if self.switch_id is None else str(self.switch_id),
            "outcome": "nothing_to_do" if self.switch_id is None else "done",
            "canary": None if self.trial is None else self.trial.to_json(),
            "restored_tools": list(self.restored),
            "duration_ms": self.duration_ms,
        }


async def switch_model(
    services: SwitchServices,
    agent_id: str,
    wanted: Wanted,
    *,
    expected: SwitchPlan | None = None,
) -> Switched:
    """Switch the agent's model.

    Args:
        services: what to work on.
        agent_id: the agent.
        wanted: the model.
        expected: the plan that someone agreed to; another one is refused.

    Raises:
        PlanRefused: it may not be done (see ``preflight``), another switch is under way
            (``switch_running``), or the plan is no longer the expected one (``plan_changed``);
            nothing was changed.
        SwitchFailed: a step or the canary failed; the old configuration is back.
        SwitchUnsettled: the same, but it could not be put back; a start will.
        AgentGone: a confirmed 404 of the agent.
    """
    started = time.monotonic()
    try:
        async with hold_lock(
            services.db, services.spec.name, clock=services.clock, wait_s=LOCK_WAIT_S
        ):
            await settle(services.gateway, services.journal)
            plan = await make_switch_plan(services, agent_id, wanted)
            if expected is not None and not plan.is_same_as(expected):
                raise PlanRefused(
                    "What is to be done has changed since the plan was shown.",
                    reason="plan_changed",
                    hint="Nothing was changed; run again to see the new plan.",
                )
            if plan.is_empty:
                return Switched(plan, None, None, (), _since(started))
            switch_id = await services.journal.open(plan)
            trial, restored = await _carry_out(services, plan, switch_id)
    except ReconcileBusy as error:
        raise await _explain_busy(services, error) from error
    done = Switched(plan, switch_id, trial, restored, _since(started))
    _log.info(
        "switch.model_switched",
        agent_id=agent_id,
        switch_id=str(switch_id),
        old=plan.from_handle,
        new=plan.to_handle,
        restored=len(restored),
        duration_ms=done.duration_ms,
    )
    return done


async def _carry_out(
    services: SwitchServices, plan: SwitchPlan, switch_id: UUID
) -> tuple[Trial, tuple[str, ...]]:
    try:
        await _patch_config(services, plan, switch_id)
        restored = await _restore_tools(services, plan, switch_id)
        trial = await _try(services, plan, switch_id)
        await _look_once_more(services, plan)
        await services.journal.close(switch_id, "done")
    except asyncio.CancelledError:
        # Ctrl-C, or the end of a process that was asked to stop: there is time to go back.
        await _go_back(services, plan, switch_id, "it was interrupted")
        raise
    except SwitchFailed as error:
        await _go_back(services, plan, switch_id, error.message, error)
        raise
    except HanSoloError as error:
        await _go_back(services, plan, switch_id, error.message, error)
        reason = "not_verified" if isinstance(error, WriteNotVerified) else "failed"
        raise SwitchFailed(
            f"The switch to {plan.to_handle} failed, and {plan.agent_name} is back on "
            f"{plan.from_handle}: {error.message}",
            reason=reason,
            hint=error.hint,
        ) from error
    return trial, restored


async def _patch_config(services: SwitchServices, plan: SwitchPlan, switch_id: UUID) -> None:
    """Take the first plan: the configuration alone, complete, read back whole."""
    position = await services.journal.intend(switch_id, "config")
    view = await services.gateway.patch_llm_config(plan.agent_id, plan.new_config)
    wrong = sorted(
        name
        for name in {**plan.new_config, **view.llm_config}
        if plan.new_config.get(name) != view.llm_config.get(name)
    )
    await services.journal.finish(switch_id, position, {"differs": wrong}, failed=bool(wrong))
    if wrong:
        name = wrong[0]
        raise differs(
            f"the new {name} of the model",
            str(plan.new_config.get(name)),
            str(view.llm_config.get(name)),
        )


async def _restore_tools(
    services: SwitchServices, plan: SwitchPlan, switch_id: UUID
) -> tuple[str, ...]:
    """Take the second plan, if the read-back shows that tools went missing."""
    view = await services.gateway.fetch_agent(plan.agent_id)
    lost = plan.tools.keys() - {tool.id for tool in view.tools}
    if not lost:
        return ()
    names = tuple(sorted(plan.tools[tool_id] for tool_id in lost))
    position = await services.journal.intend(switch_id, "tools")
    await put_tools(services.gateway, view, list(plan.tools))
    await services.journal.finish(switch_id, position, {"restored": list(names)})
    _log.warning("switch.tools_lost", agent_id=plan.agent_id, lost=len(names))
    return names


async def _try(services: SwitchServices, plan: SwitchPlan, switch_id: UUID) -> Trial:
    position = await services.journal.intend(switch_id, "canary")
    trial = await try_model(services, plan, switch_id)
    await services.journal.finish(switch_id, position, trial.to_json(), failed=not trial.answered)
    if not trial.answered:
        is_ours = trial.cause in {"not_made", "differs", "failed"}
        raise SwitchFailed(
            f"{plan.to_handle} was tried and did not answer, so {plan.agent_name} is back on "
            f"{plan.from_handle}, as it was. {trial.sentence}",
            reason="canary_failed" if is_ours else "canary_silent",
            hint="See the provider's key, quota and status, and what the model makes of the tools.",
        )
    return trial


async def _look_once_more(services: SwitchServices, plan: SwitchPlan) -> None:
    """Read the agent a last time: a turn may have passed since the two plans were read back."""
    config = await read_config(services.gateway, plan.agent_id)
    if config != plan.new_config:
        raise differs("the new configuration", "as it was sent", "another one")


async def _go_back(
    services: SwitchServices,
    plan: SwitchPlan,
    switch_id: UUID,
    why: str,
    cause: HanSoloError | None = None,
) -> None:
    """Put the old configuration back, to the byte; close the switch in the journal.

    Raises:
        SwitchUnsettled: that failed too.
    """
    try:
        await put_back(
            services.gateway,
            services.journal,
            switch_id,
            agent_id=plan.agent_id,
            old_config=plan.old_config,
            tool_ids=list(plan.tools),
            is_unsure=isinstance(cause, LettaUnavailable),
        )
        await services.journal.close(switch_id, "returned", why)
    except HanSoloError as error:
        _log.warning("switch.not_returned", switch_id=str(switch_id), error=type(error).__name__)
        raise SwitchUnsettled(
            f"The switch to {plan.to_handle} failed ({why.rstrip('.')}), and {plan.from_handle} "
            f"could not be put back: {error.message}",
            reason="failed",
            hint="The journal has it: the next start of the bridge, a sync or a switch puts it "
            "back. To do so at once: han-solo sync-tools.",
        ) from (cause or error)
    _log.warning("switch.returned", switch_id=str(switch_id), agent_id=plan.agent_id)


async def _explain_busy(services: SwitchServices, error: ReconcileBusy) -> HanSoloError:
    running = await services.journal.load_open()
    if running is None:
        return error
    return PlanRefused(
        f"A switch of {services.spec.name} to {running.to_handle} has been under way since "
        f"{running.started_at:%H:%M:%S} UTC ({running.started_by}).",
        reason="switch_running",
        hint="Nothing was changed; wait for it, and see what it came to: switch-model --history.",
    )


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
