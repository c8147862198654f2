"""The rehearsal model as a part of ``up``: a process of its own, so Letta can outlive our work."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

import httpx

from ..connections import LOOPBACK
from ..errors import EmbeddedError
from ..home import Home
from .ports import refuse_taken_port
from .processes import ManagedProcess, last_line, pause, stop_leftover

_TIMEOUT_S: Final = 60.0


class RehearsalProcess:
    """The rehearsal model's process. ``base_url`` ends in ``/v1``, as Letta wants it."""

    def __init__(self, home: Home, port: int) -> None:
        self.port = port
        self.base_url = f"http://{LOOPBACK}:{port}/v1"
        self._pid_file = home.run / "rehearsal.pid"
        self._process = ManagedProcess(
            "The rehearsal model",
            [sys.executable, "-m", f"{__package__}.rehearsal", "--port", str(port)],
            log=home.logs / "rehearsal.log",
            env=_build_env(),
            cwd=Path("/"),
            pid_file=self._pid_file,
        )

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    async def start(self) -> None:
        """Start it and return when it answers. Idempotent.

        Raises:
            EmbeddedError: it ended or did not answer in time.
        """
        if self.is_running:
            return
        await stop_leftover(self._pid_file)
        refuse_taken_port(self.port, "the rehearsal model")
        await self._process.start()
        deadline = time.monotonic() + _TIMEOUT_S
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            while time.monotonic() < deadline and self._process.is_running:
                try:
                    answer = await client.get(f"http://{LOOPBACK}:{self.port}/health")
                except httpx.TransportError:
                    await pause()
                    continue
                if answer.is_success:
                    return
                await pause()
        said = last_line(self._process.read_log_tail()) or "no answer"
        await self._process.stop()
        raise EmbeddedError(
            f"The rehearsal model did not start: {said}.", hint=f"Its log is {self._process.log}."
        )

    async def stop(self) -> None:
        """Stop it. Idempotent."""
        await self._process.stop()


def _build_env() -> dict[str, str]:
    """Return what Python itself needs: it reads no setting and no key."""
    kept = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PATH")
    return {"LANG": "C.UTF-8", **{name: os.environ[name] for name in kept if name in os.environ}}
