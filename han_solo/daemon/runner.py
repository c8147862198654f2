"""Run guards for one agent: look, record, repair where that is allowed, look again.

Who calls: the daemon on its intervals, ``guards run`` at a terminal. Looking needs no permission;
a remedy needs the leader's epoch, which the database compares when it is opened. A guard that can
not look is told of too: no finding is ever closed because nobody looked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from .. import logs
from ..declare import Finding, GuardSpec
from ..errors import AgentGone, DatabaseUnavailable, HanSoloError, LeadLost, LettaUnavailable
from ..findings.model import COULD_NOT_LOOK, Recorded, RemedyOutcome
from ..guard_context import CheckContext, GuardServices, Looks, RemedyContext
from .alerts import AlertSender, send_alerts
from .checking import run_check
from .report import GuardReport, Mode, Outcome, RemedyReport, merge

IDENTITY: Final = "agent_identity"
"""While this guard finds something critical, nothing is repaired: it may be another agent."""

REMEDY_TIMEOUT_S: Final = 600.0
"""As long as a sync of several hundred tools may take."""

_MOST_LOOKS: Final = 3
"""How often a look is taken anew because another process recorded one meanwhile."""

_left_open: Final[dict[tuple[str, str], int]] = {}
"""Remedies of this process whose end could not be recorded, by guard and agent: Postgres went away.
One that is open keeps the next from starting for as long as we lead."""

_log = logs.get("guards")


async def run_guards(
    services: GuardServices,
    agent_id: str,
    guards: Sequence[GuardSpec],
    *,
    epoch: int | None = None,
    modes: Mapping[str, Mode] | None = None,
    alerts: AlertSender | None = None,
    at_once: bool = False,
) -> tuple[GuardReport, ...]:
    """Run the guards, ``agent_identity`` first, with what they read shared among them.

    Args:
        services: what they work on.
        agent_id: the agent.
        guards: those that are due.
        epoch: the leader's; without one nothing is repaired.
        modes: replaces what a guard declares; ``off`` leaves it out.
        alerts: tells of each opening once.
        at_once: try a remedy again that did not help a moment ago: somebody asks for it.

    Raises:
        DatabaseUnavailable: nothing could be recorded; the next run does it.
        LeadLost: in the middle of a remedy, by ``writes_only_while`` around this.
    """
    run = _Run(services, agent_id, epoch, modes or {}, at_once=at_once)
    due = sorted(guards, key=lambda spec: (spec.name != IDENTITY, spec.name))
    due = [spec for spec in due if run.mode_of(spec) != "off"]
    reports = [await run.guard(spec) for spec in due]
    if any(report.has_tried for report in reports):
        reports = [await run.look_again(*pair) for pair in zip(due, reports, strict=True)]
    await run.note_attachments()
    if alerts is not None:
        await send_alerts(services, agent_id, alerts)
    return tuple(reports)


class _Run:
    """One pass over the due guards."""

    def __init__(
        self,
        services: GuardServices,
        agent_id: str,
        epoch: int | None,
        modes: Mapping[str, Mode],
        *,
        at_once: bool,
    ) -> None:
        self._at_once = at_once
        self._services = services
        self._agent_id = agent_id
        self._epoch = epoch
        self._modes = modes
        self._looks = Looks()

    def mode_of(self, spec: GuardSpec) -> Mode:
        return self._modes.get(spec.name, spec.mode)

    async def guard(self, spec: GuardSpec) -> GuardReport:
        report, found = await self._look(spec)
        if not found or spec.remedy is None or self.mode_of(spec) != "repair":
            return report
        if self._epoch is None:
            return report
        if await self._is_somebody_else():
            why = f"{IDENTITY} found something critical: this may be another agent."
            return merge(report, report, RemedyReport("refused", why))
        return await self._repair(spec, report, found)

    async def look_again(self, spec: GuardSpec, before: GuardReport) -> GuardReport:
        """Look again at what was left as it was: another guard's remedy may have mended it too."""
        if before.has_tried or not before.findings or before.outcome == "blind":
            return before
        after, _ = await self._look(spec)
        return merge(before, after, before.remedy)

    async def note_attachments(self) -> None:
        """Keep what every known agent has attached, for the guard that looks for what vanished."""
        for agent_id in (await self._services.snapshots.list_agents()).values():
            try:
                agent = (
                    await self._context().agent()
                    if agent_id == self._agent_id
                    else await self._services.letta.fetch_agent(agent_id)
                )
            except HanSoloError as error:
                _log.debug("guard.agent_not_read", agent_id=agent_id, reason=str(error))
            else:
                await self._services.snapshots.note(agent)

    # Within

    def _context(self) -> CheckContext:
        return CheckContext(
            self._services, self._agent_id, now=self._services.clock.now(), looks=self._looks
        )

    async def _look(self, spec: GuardSpec) -> tuple[GuardReport, tuple[Finding, ...]]:
        started = time.monotonic()
        findings = self._services.findings
        recorded = Recorded(is_stale=True)
        found: tuple[Finding, ...] = ()
        looks = 0
        while recorded.is_stale and looks < _MOST_LOOKS:
            if looks:
                self._looks = Looks()
            looks += 1
            runs = await findings.count_runs(spec.name, self._agent_id)
            try:
                found = await run_check(spec, self._context())
                recorded = await findings.record(
                    spec.name, self._agent_id, found, duration_ms=_ms_since(started), runs=runs
                )
            except DatabaseUnavailable:
                raise
            except HanSoloError as error:
                # One guard tells that Letta is away or the agent gone; others have nothing to add.
                is_told = (
                    isinstance(error, LettaUnavailable | AgentGone)
                    and spec.name != IDENTITY
                    and self._modes.get(IDENTITY) != "off"
                )
                return await self._blind(spec, str(error), started, is_told=is_told), ()
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a loop's edge: told of
                _log.exception("guard.check_failed", guard=spec.name)
                why = f"A fault in the guard itself: {type(error).__name__}: {error}"
                return await self._blind(spec, why, started, is_told=False), ()
        if recorded.is_stale:
            found = ()  # others look at this all the time; what they recorded is what is known
        report = await self._report(spec, "found" if found else "clear", recorded)
        if recorded.is_stale and report.findings:
            report = replace(report, outcome="found")
        return report, found

    async def _blind(
        self, spec: GuardSpec, why: str, started: float, *, is_told: bool
    ) -> GuardReport:
        finding = Finding(
            key=COULD_NOT_LOOK,
            summary=f"The guard {spec.name} could not look: {why}",
            hint="Until it can, what it watches is not watched; `han-solo doctor` shows the parts.",
        )
        recorded = await self._services.findings.record_failure(
            spec.name,
            self._agent_id,
            why,
            finding=None if is_told else finding,
            duration_ms=_ms_since(started),
        )
        return await self._report(spec, "blind", recorded, error=why)

    async def _report(
        self,
        spec: GuardSpec,
        outcome: Outcome,
        recorded: Recorded,
        *,
        error: str | None = None,
    ) -> GuardReport:
        rows = await self._services.findings.list_open(self._agent_id, spec.name)
        for row in rows:
            if row.id in recorded.opened_ids:
                _log.info(  # told to people as an alert, which is logged as loudly as it deserves
                    "guard.finding_opened", guard=spec.name, key=row.key, severity=row.severity
                )
        for key in recorded.resolved.values():
            _log.info("guard.finding_resolved", guard=spec.name, key=key)
        return GuardReport(
            guard=spec.name,
            outcome=outcome,
            findings=rows,
            opened=len(recorded.opened_ids),
            resolved=tuple(recorded.resolved.values()),
            error=error,
        )

    async def _is_somebody_else(self) -> bool:
        rows = await self._services.findings.list_open(self._agent_id, IDENTITY)
        return any(row.severity == "critical" for row in rows)

    async def _repair(
        self, spec: GuardSpec, before: GuardReport, found: tuple[Finding, ...]
    ) -> GuardReport:
        assert self._epoch is not None
        findings = self._services.findings
        ids = [row.id for row in before.findings]
        if not self._at_once:
            tries = await findings.load_tries(spec.name, self._agent_id)
            next_at = tries.find_next(ids)
            if next_at is not None and self._services.clock.now() < next_at:
                why = (
                    f"The last {tries.failures} tries did not help; "
                    f"the next one is not before {next_at:%H:%M:%S} UTC."
                )
                return merge(before, before, RemedyReport("deferred", why))
        of_guard = (spec.name, self._agent_id)
        if (left_open := _left_open.get(of_guard)) is not None:
            await findings.finish_remedy(left_open, "abandoned", "Its end could not be recorded.")
            _left_open.pop(of_guard, None)
        remedy_id = await findings.start_remedy(
            spec.name,
            self._agent_id,
            agent_name=self._services.reconcile.spec.name,
            finding_ids=ids,
            epoch=self._epoch,
        )
        if remedy_id is None:
            why = "Another process leads, or repairs this already."
            _log.info("guard.remedy_refused", guard=spec.name, epoch=self._epoch)
            return merge(before, before, RemedyReport("refused", why))
        try:
            what, failed = await self._apply(spec, found)
            self._looks = Looks()  # what was read before it is no longer so
            after, left = await self._look(spec)
            outcome: RemedyOutcome = "done"
            if failed:
                outcome = "failed"
            elif after.outcome == "blind" or {f.key for f in found} & {f.key for f in left}:
                outcome = "no_effect"
            await findings.finish_remedy(remedy_id, outcome, what)
        except BaseException:
            _left_open[of_guard] = remedy_id
            raise
        _log.info("guard.remedy_applied", guard=spec.name, outcome=outcome, epoch=self._epoch)
        return merge(before, after, RemedyReport(outcome, what))

    async def _apply(self, spec: GuardSpec, found: tuple[Finding, ...]) -> tuple[str, bool]:
        """Run the remedy; return what it says, and whether it failed."""
        assert spec.remedy is not None
        assert self._epoch is not None
        context = RemedyContext(
            self._services, self._agent_id, now=self._services.clock.now(), epoch=self._epoch
        )
        deadline = asyncio.timeout(REMEDY_TIMEOUT_S)
        try:
            async with deadline:
                return await spec.remedy(context, found), False
        except LeadLost:
            raise  # the next leader closes it as abandoned
        except HanSoloError as failure:
            return str(failure), True
        except (Exception, SystemExit) as failure:  # noqa: BLE001 - a loop's edge: told of
            if deadline.expired():
                return f"It did not end within {REMEDY_TIMEOUT_S:g} s.", True
            _log.exception("guard.remedy_failed", guard=spec.name)
            return f"A fault in the remedy itself: {type(failure).__name__}: {failure}", True


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
