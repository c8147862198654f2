"""The bridge as a part of ``up``: ``python -m han_solo bridge`` in a process of its own.

Up means more than listening: the database answers, the agent is resolved and its tools are in
sync. A bridge whose tools can not be brought in sync is up all the same, since the memory works
without it; ``problem`` then says why, and the status table shows it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from ..connections import Connections
from ..errors import EmbeddedError
from ..home import Home
from ..settings import Settings
from .ports import refuse_taken_port
from .processes import ManagedProcess, last_line, stop_leftover

_TIMEOUT_S: Final = 180.0  # the first sync registers and attaches every tool
_POLL_S: Final = 0.2
_GRACE_S: Final = 15.0  # the bridge tries again after a failed sync; the first reason may pass


@dataclass(frozen=True, slots=True)
class BridgeState:
    """What ``/health`` said."""

    is_ok: bool
    in_sync: bool | None
    reason: str | None
    is_final: bool = False


def find_error(said: str) -> str:
    """Return the sentence and the hint that a command of ours ended with, or else its last line."""
    lines = said.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if not starts:
        return f"{last_line(said)}."
    found = lines[starts[-1] :]
    return " ".join(line.strip() for line in found).removeprefix("error: ")


class BridgeProcess:
    """The bridge's process; reads its settings like any command, from environment and home."""

    def __init__(self, settings: Settings, home: Home) -> None:
        self.problem: str | None = None
        self._connections = Connections(settings)
        self._pid_file = home.run / "bridge.pid"
        self._process = ManagedProcess(
            "The bridge",
            [sys.executable, "-m", "han_solo", "bridge"],
            log=home.logs / "bridge.log",
            env={**os.environ, "HAN_SOLO_HOME": str(home.root), "HAN_SOLO_LOG_FORMAT": "json"},
            cwd=Path.cwd(),  # where its .env is read from, as ours was
            pid_file=self._pid_file,
        )

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    async def start(self) -> None:
        """Start it and wait until the agent is resolved and its tools are in sync.

        Raises:
            EmbeddedError: it ended, or did not get there in time; carries its own reason.
        """
        await stop_leftover(self._pid_file)  # of a killed `up`; only then is the port judged
        settings = self._connections.settings
        refuse_taken_port(self._connections.bridge_port, "the bridge", host=settings.bridge_host)
        await self._process.start()
        async with httpx.AsyncClient(timeout=10.0) as client:
            state = await self._wait(client)
        if not state.is_ok:
            raise EmbeddedError(
                f"The bridge is not well: {state.reason or 'it does not say why'}",
                hint=f"Its log is {self._process.log}.",
            )
        self.problem = None if state.in_sync else state.reason

    async def _wait(self, client: httpx.AsyncClient) -> BridgeState:
        """Return the state once all is well, or once what is not well has stayed so for a while."""
        state = BridgeState(is_ok=False, in_sync=None, reason="it does not answer")
        deadline = time.monotonic() + _TIMEOUT_S
        unwell_since: float | None = None
        while (now := time.monotonic()) < deadline:
            if not self._process.is_running:
                raise EmbeddedError(
                    f"The bridge ended: {find_error(self._process.read_log_tail())}",
                    hint=f"Its log is {self._process.log}.",
                )
            state = await self._ask(client) or state
            if state.is_ok and (state.in_sync or state.is_final):
                break
            unwell_since = (unwell_since or now) if state.in_sync is False else None
            if unwell_since and now - unwell_since > _GRACE_S:
                break
            await asyncio.sleep(_POLL_S)
        return state

    async def stop(self) -> None:
        await self._process.stop()

    async def _ask(self, client: httpx.AsyncClient) -> BridgeState | None:
        try:
            answer = await client.get(f"{self._connections.bridge_local_url}/health")
            found = answer.json()
            sync = found["sync"]
            why = sync["reason"] or "; ".join(found["failed"].values()) or None
            is_final = bool(sync["is_final"])
            return BridgeState(found["status"] == "ok", sync["tools_in_sync"], why, is_final)
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError):
            return None  # not up yet, or not ours; the deadline decides
