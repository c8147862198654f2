"""``han-solo daemon``: guards at their intervals, due jobs, one leader and its spares.

The leader alone looks and repairs; a spare waits for its lock and takes over within seconds. What
goes away (Postgres, Letta, the lead) is told once and waited for, with pauses that grow; what can
not be used as it is set ends the daemon with a sentence.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any, Final

from .. import logs
from ..clock import Clock
from ..errors import AgentGone, DatabaseUnavailable, HanSoloError, LettaUnavailable
from ..loader import load_registry
from ..settings import Settings
from ..stopping import stop_on_signals, wait_for
from .alerts import Alerts
from .cadence import Cadence, count_in_utc
from .choice import Choice, choose, modes_of
from .jobs import run_due_jobs
from .leadership import Lead, Leadership
from .parts import Parts, open_parts
from .presence import BEAT_S, State, note_daemon
from .runner import run_guards
from .services import build_guard_services
from .switches import settle_switches

JOBS_EVERY_S: Final = 30.0
"""How late a due job may begin: of no matter for what runs once an hour or a night."""

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
"""Between two tries to reach Postgres; doubled each time, with jitter."""

RUN_DUE_S: Final = 30.0
"""How long a guard that had a job run waits to see it end; a long one shows at the next look."""

_RUN_DUE_POLL_S: Final = 0.5
NO_AGENT_S: Final = 2.0
STOP_S: Final = 20.0
"""How long a remedy under way may take to end when the daemon is stopped."""

_log = logs.get("daemon")


async def serve_daemon(settings: Settings) -> None:
    """Watch until SIGTERM or SIGINT.

    Raises:
        HanSoloError: settings, spec, guards or database can not be used as they are.
    """
    settings = settings.model_copy(update={"timezone": settings.zone.key})
    count_in_utc()
    registry = load_registry(settings.extensions)
    choices = choose(registry.guards, settings)
    with stop_on_signals() as stop:
        await Daemon(settings, choices).run(stop)


class Daemon:
    """One daemon of one agent."""

    def __init__(
        self, settings: Settings, choices: Sequence[Choice], clock: Clock | None = None
    ) -> None:
        self._settings = settings
        self._choices = tuple(choice for choice in choices if choice.runs)
        self._registry = load_registry(settings.extensions)
        self._clock = clock or Clock()
        self._started_at = self._clock.now()
        self._kick = asyncio.Event()
        self._state: State = "spare"
        self._epoch: int | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Watch until ``stop`` is set; Postgres may come and go meanwhile."""
        pause_s, away_since = FIRST_PAUSE_S, None
        while not stop.is_set():
            try:
                async with open_parts(self._settings, self._registry, self._clock) as parts:
                    if away_since is not None:
                        _log.info("daemon.database_back", away_since=away_since.isoformat())
                    pause_s, away_since = FIRST_PAUSE_S, None
                    await self._serve(parts, stop)
            except DatabaseUnavailable as error:
                if not error.retryable:
                    raise
                away_since = away_since or self._tell_away(error)
                await wait_for(stop, timeout_s=random.uniform(0.5, 1.0) * pause_s)  # noqa: S311 - jitter
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        _log.info("daemon.stopped")

    def _tell_away(self, error: HanSoloError) -> datetime:
        _log.warning("daemon.database_away", reason=str(error))
        return self._clock.now()

    async def _serve(self, parts: Parts, stop: asyncio.Event) -> None:
        leadership = Leadership(parts.db, parts.reconcile.spec.name, clock=self._clock)
        _log.info("daemon.started", agent=parts.reconcile.spec.name, holder=leadership.holder)
        async with _Beside(self._keep_presence(parts, leadership.holder)):
            while not stop.is_set():
                async with leadership.wait_to_lead(stop) as lead:
                    if lead is None:
                        break
                    self._state, self._epoch = "leading", lead.epoch
                    await self._note(parts, leadership.holder)
                    try:
                        await self._lead(parts, lead, stop)
                    finally:
                        self._state, self._epoch = "spare", None
        self._state = "stopped"
        with contextlib.suppress(HanSoloError):
            await self._note(parts, leadership.holder)

    async def _keep_presence(self, parts: Parts, holder: str) -> None:
        while True:
            with contextlib.suppress(DatabaseUnavailable):  # the watch itself tells of it
                await self._note(parts, holder)
            await self._clock.sleep(BEAT_S)

    async def _note(self, parts: Parts, holder: str) -> None:
        await note_daemon(
            parts.db,
            holder=holder,
            agent_name=parts.reconcile.spec.name,
            state=self._state,
            epoch=self._epoch,
            started_at=self._started_at,
        )

    async def _lead(self, parts: Parts, lead: Lead, stop: asyncio.Event) -> None:
        """Watch and run jobs while the lead is held."""
        async with (
            _Beside(settle_switches(parts.reconcile, lead, stop)),
            _Beside(self._run_jobs(parts, lead, stop)),
        ):
            watching = asyncio.ensure_future(self._watch(parts, lead, stop))
            ending = asyncio.ensure_future(_either(stop, lead.lost))
            try:
                await asyncio.wait({watching, ending}, return_when=asyncio.FIRST_COMPLETED)
                # What goes on when the lead is lost is cut off: another may begin the same. Asked
                # to stop, a remedy under way may end; one that does not is closed by the next.
                timeout_s = 0.0 if lead.lost.is_set() else STOP_S
                await asyncio.wait({watching}, timeout=timeout_s)
            finally:
                ending.cancel()
                watching.cancel()
                await asyncio.gather(watching, ending, return_exceptions=True)
        if not watching.cancelled() and (error := watching.exception()) is not None:
            raise error

    async def _watch(self, parts: Parts, lead: Lead, stop: asyncio.Event) -> None:
        agent_id = await self._find_agent(parts, lead, stop)
        if agent_id is None:
            return
        services = build_guard_services(
            self._settings,
            parts.reconcile,
            parts.gateway,
            agent_id,
            self._clock,
            callback_tools=self._registry.callback_tools,
            jobs=self._registry.jobs,
            run_due=lambda job: self._run_due(parts, job),
        )
        alerts = Alerts.connect(parts.reconcile.spec.name, self._settings.alert_urls)
        by_name = {choice.name: choice.spec for choice in self._choices}
        cadence = Cadence({choice.name: choice.every_s for choice in self._choices})
        for guard, key in await services.findings.resolve_unwatched(agent_id, list(by_name)):
            _log.info("guard.finding_dropped", guard=guard, key=key)
        while not stop.is_set() and not lead.lost.is_set():
            if due := cadence.take_due():
                try:
                    await run_guards(
                        services,
                        agent_id,
                        [by_name[name] for name in sorted(due)],
                        epoch=lead.epoch,
                        modes=modes_of(self._choices),
                        alerts=alerts,
                    )
                except DatabaseUnavailable:
                    raise
                except Exception:  # noqa: BLE001 - a loop's edge: told, and it goes on
                    _log.exception("daemon.guards_fault")
            await wait_for(stop, lead.lost, timeout_s=max(cadence.idle_s, 0.05))

    async def _find_agent(self, parts: Parts, lead: Lead, stop: asyncio.Event) -> str | None:
        """Return the agent's id; the bridge may still be making the agent."""
        is_told = False
        while not stop.is_set() and not lead.lost.is_set():
            found = self._settings.agent_id or await parts.reconcile.known.load_agent_id()
            if found is not None:
                return found
            if not is_told:
                _log.info("daemon.no_agent_yet", agent=parts.reconcile.spec.name)
                is_told = True
            await wait_for(stop, lead.lost, timeout_s=NO_AGENT_S)
        return None

    async def _run_jobs(self, parts: Parts, lead: Lead, stop: asyncio.Event) -> None:
        """Run due jobs beside the guards; the lease keeps other machines' timers from doing so."""
        cadence = Cadence({"jobs": JOBS_EVERY_S})
        while not stop.is_set() and not lead.lost.is_set():
            if cadence.take_due() or self._kick.is_set():
                self._kick.clear()
                try:
                    await run_due_jobs(parts.jobs, self._registry.jobs)
                except (DatabaseUnavailable, LettaUnavailable, AgentGone) as error:
                    _log.warning("daemon.jobs_not_run", reason=str(error))
                except Exception:  # noqa: BLE001 - a loop's edge: told with its traceback, and it goes on
                    _log.exception("daemon.jobs_fault")
            await wait_for(stop, lead.lost, self._kick, timeout_s=max(cadence.idle_s, 0.05))

    async def _run_due(self, parts: Parts, job: str) -> str:
        """Wake the loop of the jobs, and give the job a moment to end."""
        began = await parts.jobs.runs.find_last(job)
        self._kick.set()
        for _ in range(round(RUN_DUE_S / _RUN_DUE_POLL_S)):
            await self._clock.sleep(_RUN_DUE_POLL_S)
            last = await parts.jobs.runs.find_last(job)
            if last is not None and last.outcome is not None and last != began:
                return f"The job {job} was run: {last.outcome}."
        return f"The job {job} was called for; it runs, or has a reason not to (jobs history)."


async def _either(*events: asyncio.Event) -> None:
    while not await wait_for(*events, timeout_s=3600.0):
        pass


class _Beside:
    """Something that runs beside the body and is ended with it."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._work)

    async def __aexit__(self, *_error: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
