"""Run guards for one agent: look, record, repair where that is allowed, look again.

Who calls: the daemon on its intervals, ``guards run`` at a terminal. Looking needs no permission;
a remedy needs the leader's epoch, which the database compares when it is opened. A guard that can
not look is told of too: no finding is ever closed because nobody looked.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from .. import logs
from ..declare import Finding, GuardMode, GuardSpec
from ..errors import AgentGone, DatabaseUnavailable, HanSoloError, LettaUnavailable
from ..findings.model import COULD_NOT_LOOK, FindingRow, Recorded, RemedyOutcome
from ..guard_context import CheckContext, GuardServices, Looks, RemedyContext

IDENTITY: str = "agent_identity"
"""While this guard finds something critical, nothing is repaired: it may be another agent."""

Mode = GuardMode | Literal["off"]
Outcome = Literal["clear", "found", "repaired", "blind"]
"""``blind``: the check could not look; what it saw earlier stays open."""

_log = logs.get("guards")


class AlertSender(Protocol):
    """Tells somebody of a finding; raises ``HanSoloError`` when it could not."""

    async def send(self, finding: FindingRow) -> None: ...


@dataclass(frozen=True, slots=True)
class RemedyReport:
    """What came of a remedy; ``refused``: somebody else leads, or runs it already."""

    outcome: RemedyOutcome | Literal["refused"]
    what: str


@dataclass(frozen=True, slots=True)
class GuardReport:
    """One run of one guard. ``findings`` are open after it; ``resolved`` are keys now gone."""

    guard: str
    outcome: Outcome
    findings: tuple[FindingRow, ...]
    opened: int
    resolved: tuple[str, ...]
    remedy: RemedyReport | None = None
    error: str | None = None


async def run_guards(
    services: GuardServices,
    agent_id: str,
    guards: Sequence[GuardSpec],
    *,
    epoch: int | None = None,
    modes: Mapping[str, Mode] | None = None,
    alerts: AlertSender | None = None,
) -> tuple[GuardReport, ...]:
    """Run the guards, ``agent_identity`` first, with what they read shared among them.

    Args:
        services: what they work on.
        agent_id: the agent.
        guards: those that are due.
        epoch: the leader's; without one nothing is repaired.
        modes: replaces what a guard declares; ``off`` leaves it out.
        alerts: tells of each opening once.

    Raises:
        DatabaseUnavailable: nothing could be recorded; the next run does it.
    """
    run = _Run(services, agent_id, epoch, modes or {})
    due = sorted(guards, key=lambda spec: (spec.name != IDENTITY, spec.name))
    reports = [await run.guard(spec) for spec in due if run.mode_of(spec) != "off"]
    await run.note_attachments()
    if alerts is not None:
        await send_alerts(services, agent_id, alerts)
    return tuple(reports)


async def send_alerts(services: GuardServices, agent_id: str, alerts: AlertSender) -> None:
    """Tell of each finding whose alert did not go out yet; one that fails is tried again."""
    for row in await services.findings.list_unalerted(agent_id):
        if not await services.findings.claim_alert(row.id):
            continue  # another process tells of it
        try:
            await alerts.send(row)
        except HanSoloError as error:
            await services.findings.return_alert(row.id)
            _log.warning("guard.alert_failed", guard=row.guard, key=row.key, reason=str(error))


class _Run:
    """One pass over the due guards."""

    def __init__(
        self,
        services: GuardServices,
        agent_id: str,
        epoch: int | None,
        modes: Mapping[str, Mode],
    ) -> None:
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
        if self._epoch is None or await self._is_somebody_else():
            return report
        return await self._repair(spec, report, found)

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
        try:
            found = tuple(await spec.check(self._context()))
        except DatabaseUnavailable:
            raise
        except HanSoloError as error:
            # One guard tells that Letta is away or the agent gone; the others have nothing to add.
            is_known = isinstance(error, LettaUnavailable | AgentGone) and spec.name != IDENTITY
            return await self._blind(spec, str(error), started, is_told=is_known), ()
        except Exception as error:  # noqa: BLE001 - a loop's edge: told of, and the others go on
            _log.exception("guard.check_failed", guard=spec.name)
            why = f"A fault in the guard itself: {type(error).__name__}: {error}"
            return await self._blind(spec, why, started, is_told=False), ()
        recorded = await findings.record(
            spec.name, self._agent_id, found, duration_ms=_ms_since(started)
        )
        return await self._report(spec, "found" if found else "clear", recorded), found

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
        remedy: RemedyReport | None = None,
        error: str | None = None,
    ) -> GuardReport:
        rows = await self._services.findings.list_open(self._agent_id, spec.name)
        for row in rows:
            if row.id in recorded.opened_ids:
                _log.warning(
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
            remedy=remedy,
            error=error,
        )

    async def _is_somebody_else(self) -> bool:
        rows = await self._services.findings.list_open(self._agent_id, IDENTITY)
        return any(row.severity == "critical" for row in rows)

    async def _repair(
        self, spec: GuardSpec, before: GuardReport, found: tuple[Finding, ...]
    ) -> GuardReport:
        assert spec.remedy is not None
        assert self._epoch is not None
        findings = self._services.findings
        remedy_id = await findings.start_remedy(
            spec.name,
            self._agent_id,
            agent_name=self._services.reconcile.spec.name,
            finding_ids=[row.id for row in before.findings],
            epoch=self._epoch,
        )
        if remedy_id is None:
            why = "Another process leads, or repairs this already."
            _log.info("guard.remedy_refused", guard=spec.name, epoch=self._epoch)
            return _with_remedy(before, before, RemedyReport("refused", why))
        context = RemedyContext(
            self._services, self._agent_id, now=self._services.clock.now(), epoch=self._epoch
        )
        error: str | None = None
        try:
            what = await spec.remedy(context, found)
        except HanSoloError as failure:
            what = error = str(failure)
        except Exception as failure:  # noqa: BLE001 - a loop's edge: told of, and the others go on
            _log.exception("guard.remedy_failed", guard=spec.name)
            what = error = f"A fault in the remedy itself: {type(failure).__name__}: {failure}"
        self._looks = Looks()  # what was read before it is no longer so
        after, left = await self._look(spec)
        keys = {finding.key for finding in found}
        outcome: RemedyOutcome = "done"
        if error is not None:
            outcome = "failed"
        elif after.outcome == "blind" or keys & {finding.key for finding in left}:
            outcome = "no_effect"
        await findings.finish_remedy(remedy_id, outcome, what)
        _log.info("guard.remedy_applied", guard=spec.name, outcome=outcome, epoch=self._epoch)
        return _with_remedy(before, after, RemedyReport(outcome, what))


def _with_remedy(before: GuardReport, after: GuardReport, remedy: RemedyReport) -> GuardReport:
    return GuardReport(
        guard=after.guard,
        outcome="repaired" if remedy.outcome == "done" and not after.findings else after.outcome,
        findings=after.findings,
        opened=before.opened if after is before else before.opened + after.opened,
        resolved=after.resolved if after is before else (*before.resolved, *after.resolved),
        remedy=remedy,
        error=after.error,
    )


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
