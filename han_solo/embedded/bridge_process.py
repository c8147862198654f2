"""The bridge as a part of ``up``: ``python -m han_solo bridge`` in a process of its own.

Up means more than listening: the agent is resolved, the database answers and the tools are in sync.
A bridge that says why they are not is up all the same; what it says is for the person to read.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass
from typing import Final

import httpx

from ..connections import Connections
from ..errors import EmbeddedError
from ..home import Home
from ..settings import Settings
from .ports import refuse_taken_port
from .processes import ManagedProcess, last_line

_TIMEOUT_S: Final = 180.0  # the first sync registers and attaches every tool
_POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class BridgeState:
    """What ``/health`` said."""

    is_ok: bool
    in_sync: bool | None
    reason: str | None


class BridgeProcess:
    """The bridge's process; reads its settings like any command, from environment and home."""

    def __init__(self, settings: Settings, home: Home) -> None:
        self._connections = Connections(settings)
        self._process = ManagedProcess(
            "The bridge",
            [sys.executable, "-m", "han_solo", "bridge"],
            log=home.logs / "bridge.log",
            env={**os.environ, "HAN_SOLO_HOME": str(home.root), "HAN_SOLO_LOG_FORMAT": "json"},
            cwd=_working_directory(),
            pid_file=home.run / "bridge.pid",
        )

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    async def start(self) -> None:
        """Start it and wait until the agent is resolved and its tools are in sync.

        Raises:
            EmbeddedError: it ended, or did not get there in time; carries its own reason.
        """
        port = self._connections.bridge_port
        await self._process.stop()
        # A killed `up` may have left one, which start() stops: only then is the port judged.
        await self._process.start_after(
            lambda: refuse_taken_port(port, "the bridge", host=self._connections.settings.bridge_host)
        )
        deadline = time.monotonic() + _TIMEOUT_S
        state: BridgeState | None = None
        async with httpx.AsyncClient(timeout=10.0) as client:
            while time.monotonic() < deadline:
                state = await self._ask(client) or state
                if state and state.is_ok and state.in_sync:
                    return
                if not self._process.is_running:
                    raise EmbeddedError(
                        f"The bridge ended: {last_line(self._process.read_log_tail())}.",
                        hint=f"Its log is {self._process.log}.",
                    )
                if state and state.in_sync is False and state.reason:
                    raise EmbeddedError(
                        f"The agent is not in sync: {state.reason}",
                        hint="See the plan with `han-solo sync-tools --dry-run`.",
                    )
                await asyncio.sleep(_POLL_S)
        why = (state and state.reason) or "it does not answer"
        raise EmbeddedError(
            f"The bridge did not become ready in {_TIMEOUT_S:.0f} s: {why}.",
            hint=f"Its log is {self._process.log}.",
        )

    async def stop(self) -> None:
        await self._process.stop()

    async def _ask(self, client: httpx.AsyncClient) -> BridgeState | None:
        try:
            answer = await client.get(f"{self._connections.bridge_local_url}/health")
            found = answer.json()
            sync = found["sync"]
            why = sync["reason"] or "; ".join(found["failed"].values()) or None
            return BridgeState(found["status"] == "ok", sync["tools_in_sync"], why)
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError):
            return None  # not up yet, or not ours; the deadline decides
