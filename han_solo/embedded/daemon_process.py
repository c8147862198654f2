"""The daemon as a part of ``up``: ``python -m han_solo daemon`` in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

from ..errors import EmbeddedError
from ..home import Home
from .bridge_process import find_error
from .processes import ManagedProcess, StopStep, stop_leftover

_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.1
_STOP: Final = (StopStep(signal.SIGTERM, 35.0),)
"""It lets a remedy under way end for twenty seconds, and then ends within eight."""

_STARTED: Final = '"daemon.started"'
"""The event in its log, once Postgres answers and all that is set can be used."""


class DaemonProcess:
    """The daemon's process; reads its settings like any command, from environment and home."""

    def __init__(self, home: Home) -> None:
        self._pid_file = home.run / "daemon.pid"
        self._process = ManagedProcess(
            "The daemon",
            [sys.executable, "-m", "han_solo", "daemon"],
            log=home.logs / "daemon.log",
            env={
                **os.environ,
                "HAN_SOLO_HOME": str(home.root),
                "HAN_SOLO_LOG_FORMAT": "json",
                "HAN_SOLO_LOG_LEVEL": "info",
            },
            cwd=Path.cwd(),  # where its .env is read from, as ours was
            stop=_STOP,
            pid_file=self._pid_file,
        )

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    async def start(self) -> None:
        """Start it and wait until it watches, or stands by for another that does.

        Raises:
            EmbeddedError: it ended, or did not get there in time; carries its own reason.
        """
        await stop_leftover(self._pid_file, _STOP)
        await self._process.start()
        deadline = time.monotonic() + _TIMEOUT_S
        while _STARTED not in self._process.read_log_tail(lines=10_000):
            if not self._process.is_running:
                raise EmbeddedError(
                    f"The daemon ended: {find_error(self._process.read_log_tail())}",
                    hint=f"Its log is {self._process.log}.",
                )
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"The daemon did not begin to watch within {_TIMEOUT_S:g} s.",
                    hint=f"Its log is {self._process.log}.",
                )
            await asyncio.sleep(_POLL_S)

    async def stop(self) -> None:
        await self._process.stop()
