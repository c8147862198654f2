"""One term of a leader: guards at their intervals, what a killed switch left, and due jobs.

Who calls: ``serve``, for each election. Nothing is carried over from one term to the next but what
stands in Postgres, so a daemon that leads again begins as any other would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from .. import logs
from ..clock import Clock
from ..errors import AgentGone, DatabaseUnavailable, LeadLost, LettaUnavailable
from ..guard_context import GuardServices
from ..letta.fence import writes_only_while
from ..stopping import wait_for
from .alerts import Alerts
from .cadence import Cadence, Retries
from .choice import Choice, modes_of
from .jobs import run_due_jobs
from .lease import Lead
from .outage import Outage
from .parts import Parts
from .report import GuardReport
from .requests import POLL_S, Requests
from .runner import run_guards
from .services import build_guard_services
from .switches import settle_switches

JOBS_EVERY_S: Final = 30.0
"""How late a due job may begin: of no matter for what runs once an hour or a night."""

RUN_DUE_S: Final = 3.0
"""How long a guard that had a job run waits to see it end; the other guards wait with it. A job
that takes longer shows at the next look."""

NO_AGENT_S: Final = 2.0
STOP_S: Final = 20.0
"""How long a remedy or a job under way may take to end when the daemon is stopped."""

_LEAST_WAIT_S: Final = 0.05

_log = logs.get("daemon")


class Term:
    """What the leader of one epoch does."""

    def __init__(
        self,
        parts: Parts,
        lead: Lead,
        stop: asyncio.Event,
        choices: Sequence[Choice],
        alerts: Alerts,
    ) -> None:
        self._parts = parts
        self._lead = lead
        self._stop = stop
        self._choices = tuple(choices)
        self._alerts = alerts
        self._clock: Clock = parts.clock
        self._kick = asyncio.Event()
        self._round_ended = asyncio.Event()
        self._letta = Outage("guards")

    async def run(self) -> None:
        """Watch and run jobs while the lead is held.

        Raises:
            DatabaseUnavailable: Postgres went away.
        """
        with writes_only_while(self._lead.require):
            works = [
                asyncio.ensure_future(self._watch()),
                asyncio.ensure_future(
                    settle_switches(self._parts.reconcile, self._lead, self._stop)
                ),
            ]
        works.append(asyncio.ensure_future(self._keep_jobs()))  # each has a lease of its own
        ending = asyncio.ensure_future(_either(self._stop, self._lead.lost))
        try:
            await asyncio.wait({*works, ending}, return_when=asyncio.FIRST_COMPLETED)
            # What goes on when the lead is lost is cut off: another may begin the same. Asked to
            # stop, what is under way may end; a remedy that does not is closed by the next leader.
            if self._stop.is_set() and self._lead.is_held:
                await _wait_all(works, self._lead.lost, timeout_s=STOP_S)
        finally:
            for task in (*works, ending):
                task.cancel()
            await asyncio.gather(*works, ending, return_exceptions=True)
        for work in works:
            if not work.cancelled() and (error := work.exception()) is not None:
                raise error

    @property
    def _goes_on(self) -> bool:
        return self._lead.is_held and not self._stop.is_set()

    async def _pause(self, timeout_s: float, *events: asyncio.Event) -> None:
        await wait_for(
            self._stop, self._lead.lost, *events, timeout_s=max(timeout_s, _LEAST_WAIT_S)
        )

    # Guards

    async def _watch(self) -> None:
        agent_id = await self._find_agent()
        if agent_id is None:
            return
        services = self._build_services(agent_id)
        await services.findings.abandon_remedies(agent_id, epoch=self._lead.epoch)
        watched = [choice.name for choice in self._choices]
        for guard, key in await services.findings.resolve_unwatched(agent_id, watched):
            _log.info("guard.finding_dropped", guard=guard, key=key)
        every_s = {choice.name: choice.every_s for choice in self._choices}
        cadence, retries = Cadence(every_s), Retries(every_s)
        requests = Requests(self._parts.db, agent_id, self._clock)
        try:
            while self._goes_on:
                if due := cadence.take_due() | retries.take_due():
                    self._note_sight(retries, await self._look(services, agent_id, due))
                await self._serve_request(requests, services, agent_id)
                await self._pause(min(cadence.idle_s, retries.idle_s, POLL_S))
        except LeadLost as error:
            _log.warning("daemon.remedy_cut_off", epoch=self._lead.epoch, reason=error.message)

    async def _serve_request(
        self, requests: Requests, services: GuardServices, agent_id: str
    ) -> None:
        """Repair what somebody at a terminal asks for, whatever the guards' modes."""
        request = await requests.load()
        if request is None:
            return
        _log.info("daemon.repair_asked", guards=list(request.guards))
        await self._look(services, agent_id, frozenset(request.guards), asked=True)
        await requests.answer(request)

    async def _look(
        self,
        services: GuardServices,
        agent_id: str,
        due: frozenset[str],
        *,
        asked: bool = False,
    ) -> tuple[GuardReport, ...]:
        chosen = [choice for choice in self._choices if choice.name in due]
        modes = dict(modes_of(self._choices))
        if asked:
            modes |= {choice.name: "repair" for choice in chosen if choice.spec.remedy}
        try:
            return await run_guards(
                services,
                agent_id,
                [choice.spec for choice in chosen],
                epoch=self._lead.epoch,
                modes=modes,
                alerts=self._alerts,
                at_once=asked,
            )
        except (DatabaseUnavailable, LeadLost):
            raise
        except Exception:  # noqa: BLE001 - a loop's edge: told, and it goes on
            _log.exception("daemon.guards_fault")
            return ()

    def _note_sight(self, retries: Retries, reports: Sequence[GuardReport]) -> None:
        """Have those that could not look try again soon, and tell of it once."""
        blind = {report.guard: report.error for report in reports if report.outcome == "blind"}
        seen = frozenset(report.guard for report in reports) - blind.keys()
        retries.note(seen, frozenset(blind))
        if blind:
            why = next(iter(blind.values())) or ""
            self._letta.began(self._clock.now(), why, guards=sorted(blind))
        elif not retries.blind:
            self._letta.ended()

    def _build_services(self, agent_id: str) -> GuardServices:
        registry = self._parts.registry
        return build_guard_services(
            self._parts.settings,
            self._parts.reconcile,
            self._parts.gateway,
            agent_id,
            self._clock,
            callback_tools=registry.callback_tools,
            jobs=registry.jobs,
            run_due=self._run_due,
        )

    async def _find_agent(self) -> str | None:
        """Return the agent's id; the bridge may still be making the agent."""
        is_told = False
        reconcile = self._parts.reconcile
        while self._goes_on:
            found = self._parts.settings.agent_id or await reconcile.known.load_agent_id()
            if found is not None:
                return found
            if not is_told:
                _log.info("daemon.no_agent_yet", agent=reconcile.spec.name)
                is_told = True
            await self._pause(NO_AGENT_S)
        return None

    # Jobs

    async def _keep_jobs(self) -> None:
        """Run due jobs beside the guards; the lease keeps other machines' timers from doing so."""
        cadence = Cadence({"jobs": JOBS_EVERY_S})
        while self._goes_on:
            is_called = self._kick.is_set()
            if cadence.take_due() or is_called:
                self._kick.clear()
                await self._run_jobs()
                if is_called:
                    self._round_ended.set()
            await self._pause(cadence.idle_s, self._kick)

    async def _run_jobs(self) -> None:
        for spec in self._parts.registry.jobs:
            if not self._goes_on:
                return
            try:
                await run_due_jobs(self._parts.jobs, [spec])
            except (DatabaseUnavailable, LettaUnavailable, AgentGone) as error:
                _log.warning("daemon.jobs_not_run", job=spec.name, reason=str(error))
            except Exception:  # noqa: BLE001 - a loop's edge: told with its traceback, and it goes on
                _log.exception("daemon.jobs_fault", job=spec.name)

    async def _run_due(self, job: str) -> str:
        """Wake the loop of the jobs, and give the job a moment to end."""
        runs = self._parts.jobs.runs
        before = await runs.find_last(job)
        self._round_ended.clear()
        self._kick.set()
        await wait_for(self._round_ended, timeout_s=RUN_DUE_S)
        last = await runs.find_last(job)
        if last is not None and last.outcome is not None and last != before:
            return f"The job {job} was run: {last.outcome}."
        return f"The job {job} was called for; it runs, or has a reason not to (jobs history)."


async def _wait_all(
    works: Sequence[asyncio.Future[None]], lost: asyncio.Event, *, timeout_s: float
) -> None:
    """Wait until all have ended, but no longer than until the event."""
    losing, ended = asyncio.ensure_future(lost.wait()), asyncio.ensure_future(asyncio.wait(works))
    try:
        await asyncio.wait({losing, ended}, timeout=timeout_s, return_when="FIRST_COMPLETED")
    finally:
        losing.cancel()
        ended.cancel()


async def _either(*events: asyncio.Event) -> None:
    while not await wait_for(*events, timeout_s=3600.0):
        pass
