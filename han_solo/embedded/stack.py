"""The supervisor behind ``up``: starts the parts in order, watches them, stops them in reverse.

Order: Postgres, Letta's environment, the rehearsal model, Letta, the bridge, the daemon. A part
whose real counterpart is set (``HAN_SOLO_DATABASE_URL``, ``LETTA_BASE_URL``, a model key) is not
started. Each part is a process in a session of its own, so Ctrl-C reaches only the supervisor; one
that dies while it should run is started again, with a pause that grows.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import filelock
import psutil

from ..connections import LETTA_DATABASE, LETTA_PASSWORD, LOOPBACK, Connections
from ..embed.weights import fetch_first
from ..errors import EmbeddedError, HanSoloError, WeightsMissing
from ..home import Endpoints, Home, write_private
from ..loader import load_registry
from ..reconcile.spec import load_spec
from ..settings import Settings
from .bridge_process import BridgeProcess
from .daemon_process import DaemonProcess
from .letta_env import ensure_letta_env
from .letta_server import EmbeddedLetta
from .model_change import leave_rehearsal
from .models import ModelChoice, choose_model, load_model_keys
from .ports import keep_ports
from .postgres import EmbeddedPostgres
from .processes import is_alive
from .progress import Progress
from .rehearsal_process import RehearsalProcess

_WATCH_S: Final = 1.0
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_STEADY_S: Final = 120.0  # after so long without a death the pause starts small again


class Part(Protocol):
    """A process of ours."""

    @property
    def is_running(self) -> bool: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@dataclass(slots=True)
class _Watched:
    name: str
    part: Part
    died_at: float = 0.0
    pause_s: float = _FIRST_PAUSE_S


class Stack:
    """All parts of one installation, while this process runs."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self.connections = Connections(settings)
        self.model: ModelChoice | None = None
        self._settings = settings
        self._cache = settings.cache.expanduser().absolute()
        self._progress = progress
        self._watched: list[_Watched] = []
        self._lock: filelock.FileLock | None = None

    @property
    def home(self) -> Home:
        return self._settings.at

    async def start(self) -> None:
        """Start what is not real and wait until all of it works.

        What was started is stopped again when a later part does not come up.

        Raises:
            HanSoloError: says which part did not come up, and why.
        """
        self.home.create()
        self._lock = take_lock(self.home)
        try:
            await self._start_parts()
        except BaseException:
            await self.stop()
            raise

    async def _start_parts(self) -> None:
        connections = self.connections
        load_registry(self._settings.extensions)  # the bridge would say it, but only in its log
        spec = load_spec(
            self._settings.agent_spec, person=self._settings.person, model=self._settings.model
        )
        model = ModelChoice(None, {})
        if connections.letta_is_embedded:
            model = choose_model(spec, load_model_keys(), last=self.home.read_last_model())
        self.model = model
        ports = keep_ports(self._settings)
        if connections.database_is_embedded or connections.letta_is_embedded:
            # Letta's tables are not ours to mix with an operator's, so a Letta of ours has a
            # Postgres of ours even where han-solo's own database is a real one.
            postgres = EmbeddedPostgres(self.home, ports.postgres_port, cache=self._cache)
            await self._start("Postgres", postgres, f"{LOOPBACK}:{ports.postgres_port}")
            if connections.letta_is_embedded:
                await self._start_letta(model, ports, postgres.url(LETTA_DATABASE))
        self.home.write_model(model.handle)
        if connections.letta_is_embedded and not model.is_rehearsal:
            await leave_rehearsal(connections, spec)
            self.home.write_last_model(spec.model.handle)
        await self._fetch_weights()
        bridge = BridgeProcess(self._settings, self.home)
        await self._start("Bridge and agent", bridge, connections.bridge_local_url)
        await self._start("Daemon", DaemonProcess(self.home), "guards and jobs")

    async def _start_letta(self, model: ModelChoice, ports: Endpoints, pg_uri: str) -> None:
        python = await ensure_letta_env(self._cache, self._progress)
        model_url = None
        if model.is_rehearsal:
            rehearsal = RehearsalProcess(self.home, ports.model_port)
            await self._start("Rehearsal model", rehearsal, rehearsal.base_url)
            model_url = rehearsal.base_url
        letta = EmbeddedLetta(
            python=python,
            home=self.home.letta,
            port=ports.letta_port,
            pg_uri=pg_uri,
            password=self.home.ensure_secret(LETTA_PASSWORD),
            bridge_urls=(self.connections.bridge_mcp_url,),
            model_url=model_url,
            model_keys=model.environment,
        )
        await self._start("Letta 0.16.8", letta, self.connections.letta_url)

    async def _fetch_weights(self) -> None:
        """Have the local embedder's weights; without them search goes by words, and says so."""
        step = self._progress.step("Weights of the embedder")
        said = ""

        def tell(word: str) -> None:
            nonlocal said
            said = word
            step.update(word)

        try:
            await fetch_first(self._cache, tell)
        except WeightsMissing as error:
            step.failed(str(error))
        else:
            step.done(said)

    async def _start(self, name: str, part: Part, address: str) -> None:
        step = self._progress.step(name)
        # Known before it starts: what is half-started is stopped too.
        self._watched.append(_Watched(name, part))
        try:
            await part.start()
        except HanSoloError as error:
            step.failed(error.message)
            raise
        except asyncio.CancelledError:
            step.failed("stopped")
            raise
        step.done(address)

    async def stop(self) -> None:
        """Stop what runs, the last started first. Idempotent."""
        while self._watched:
            watched = self._watched.pop()
            try:
                await watched.part.stop()
            except HanSoloError as error:  # the others are to be stopped all the same
                self._progress.step(f"Stopping {watched.name}").failed(error.message)
        if self._lock is not None:
            (self.home.run / "up.json").unlink(missing_ok=True)
            self._lock.release()
            self._lock = None

    async def watch(self, tell: Callable[[str], None]) -> None:
        """Start again whatever dies; runs until it is cancelled.

        Args:
            tell: is given a sentence for the person at the terminal.
        """
        while True:
            await asyncio.sleep(_WATCH_S)
            for watched in list(self._watched):
                if not watched.part.is_running:
                    await self._start_again(watched, tell)

    async def _start_again(self, watched: _Watched, tell: Callable[[str], None]) -> None:
        now = time.monotonic()
        if now - watched.died_at > _STEADY_S:
            watched.pause_s = _FIRST_PAUSE_S
        watched.died_at = now
        tell(f"{watched.name} ended by itself; it is started again in {watched.pause_s:.0f} s.")
        await asyncio.sleep(watched.pause_s)
        watched.pause_s = min(watched.pause_s * 2, _LONGEST_PAUSE_S)
        try:
            await watched.part.stop()  # buries it, and ends what it left running
            await watched.part.start()
        except HanSoloError as error:
            tell(f"{watched.name} did not come up: {error}")
        else:
            tell(f"{watched.name} runs again.")


def take_lock(home: Home) -> filelock.FileLock:
    """Make this process the one ``up`` of the home.

    Raises:
        EmbeddedError: another one runs; names its process.
    """
    lock = filelock.FileLock(home.run / "up.lock", thread_local=False, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        running = find_running(home)
        who = f" (process {running})" if running else ""
        raise EmbeddedError(
            f"han-solo already runs here{who}, with its state in {home.root}.",
            hint="See it with `han-solo status`; stop it with Ctrl-C in its terminal.",
        ) from error
    created = psutil.Process().create_time()
    write_private(home.run / "up.json", json.dumps({"pid": os.getpid(), "created": created}))
    return lock


def was_killed(home: Home) -> bool:
    """Say whether the last ``up`` on this home ended without stopping its parts."""
    return (home.run / "up.json").exists() and find_running(home) is None


def find_running(home: Home) -> int | None:
    """Return the process id of the ``up`` that runs on this home, or None."""
    try:
        stored = json.loads((home.run / "up.json").read_text(encoding="utf-8"))
        process = psutil.Process(int(stored["pid"]))
        is_it = is_alive(process) and abs(process.create_time() - stored["created"]) < 1
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None
    return process.pid if is_it else None
