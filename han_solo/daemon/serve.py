"""``han-solo daemon``: stands by, leads when nobody does, and outlives what goes away.

The leader alone looks and repairs (``term``); a spare waits for its lock and takes over within
seconds. Postgres may go away and come back: that is told once and waited for, with pauses that
grow. What can not be used as it is set ends the daemon with a sentence.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from .. import logs
from ..clock import Clock
from ..errors import DatabaseRefused, DatabaseUnavailable
from ..loader import load_registry
from ..registry import Registry
from ..settings import Settings
from ..stopping import stop_on_signals, wait_for
from .alerts import Alerts
from .cadence import count_in_utc
from .choice import Choice, choose
from .leadership import Leadership
from .outage import Outage
from .parts import Parts, open_parts
from .presence import Presence
from .term import STOP_S, Term

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
"""Between two tries to reach Postgres; doubled each time, with jitter. What held for longer than
the longest pause is no part of the same outage."""

FAREWELL_S: Final = 2.0
"""How long noting that it is stopped may take; its heartbeat would tell of it anyway."""

END_S: Final = 8.0
"""How long ending may take beside a remedy under way; then connections are cut."""

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
        await Daemon(settings, registry, choices).run(stop)


class Daemon:
    """One daemon of one agent."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        choices: Sequence[Choice],
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._choices = tuple(choice for choice in choices if choice.runs)
        self._clock = clock or Clock()
        self._database = Outage("database")
        self._is_serving = False

    async def run(self, stop: asyncio.Event) -> None:
        """Watch until ``stop`` is set, and end soon after it whatever hangs.

        Raises:
            HanSoloError: something can not be used as it is set.
        """
        serving = asyncio.ensure_future(self._keep_serving(stop))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if self._is_serving and not serving.done():
                await asyncio.wait({serving}, timeout=STOP_S + END_S)
            if serving.done():
                serving.result()
        finally:
            for task in (serving, stopping):
                task.cancel()
            await asyncio.gather(serving, stopping, return_exceptions=True)
        _log.info("daemon.stopped")

    async def _keep_serving(self, stop: asyncio.Event) -> None:
        pause_s = FIRST_PAUSE_S
        while not stop.is_set():
            began_s = time.monotonic()
            try:
                async with open_parts(self._settings, self._registry, self._clock) as parts:
                    await self._serve(parts, stop)
            except DatabaseRefused:
                raise  # it would refuse us again
            except DatabaseUnavailable as error:
                self._database.began(self._clock.now(), str(error))
            finally:
                self._is_serving = False
            if time.monotonic() - began_s > LONGEST_PAUSE_S:
                pause_s = FIRST_PAUSE_S
            await wait_for(stop, timeout_s=random.uniform(0.5, 1.0) * pause_s)  # noqa: S311 - jitter
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _serve(self, parts: Parts, stop: asyncio.Event) -> None:
        name = parts.reconcile.spec.name
        alerts = Alerts.connect(name, self._settings.alert_urls)  # a spare too says what is wrong
        leadership = Leadership(parts.db, name, clock=self._clock)
        presence = Presence(parts.db, name, leadership.holder, self._clock)
        await presence.become("spare")  # which shows that Postgres takes writes
        self._database.ended()
        self._is_serving = True
        _log.info("daemon.started", agent=name, holder=leadership.holder)
        async with _Beside(presence.keep()):
            while not stop.is_set():
                async with leadership.wait_to_lead(stop) as lead:
                    if lead is None:
                        break
                    await presence.become("leading", lead.epoch)
                    await Term(parts, lead, stop, self._choices, alerts).run()
                if not stop.is_set():
                    await presence.become("spare")
        with contextlib.suppress(DatabaseUnavailable, TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await presence.become("stopped")


class _Beside:
    """Something that runs beside the body and is ended with it."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work = work

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._work)

    async def __aexit__(self, *_error: object) -> None:
        self._task.cancel()
        (ended,) = await asyncio.gather(self._task, return_exceptions=True)
        if isinstance(ended, Exception):
            _log.error("daemon.heartbeat_ended", reason=f"{type(ended).__name__}: {ended}")
