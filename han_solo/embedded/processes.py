"""Child processes of ``up``: started in a session of their own, stopped by pid, whole trees.

A session of its own keeps the terminal's Ctrl-C from the child, so that the parts stop in the order
``up`` chooses. What a killed ``up`` left running is found by its pid and start time, which no
other process can share, and stopped before a new one starts.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from ..errors import EmbeddedError
from ..home import write_private
from .os_user import OsUser

_POLL_S: Final = 0.05
_CLOCK_SLACK_S: Final = 2.0  # start times are counted from the boot time, which NTP may move
_MAX_TAIL_BYTES: Final = 64_000
_MAX_LOG_BYTES: Final = 10_000_000  # two files of it; a log is read by people, after a failure


@dataclass(frozen=True, slots=True)
class StopStep:
    """A signal, and the seconds granted before the next one. SIGKILL always comes last."""

    signal: signal.Signals
    grace_s: float


DEFAULT_STOP: Final = (StopStep(signal.SIGTERM, 20.0),)


class ManagedProcess:
    """One child process, its log (0600, appended) and, if asked for, its pid file.

    Args:
        name: what messages call it.
        argv: never holds a secret, since everyone on the machine can read it.
        env: the whole environment; nothing is inherited.
        cwd: must be passable for ``run_as``.
        run_as: the OS user it runs as; None: ours.
        stop: signals in order.
        pid_file: lets the next start find and stop it after a ``kill -9`` of ours.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str],
        cwd: Path,
        run_as: OsUser | None = None,
        stop: Sequence[StopStep] = DEFAULT_STOP,
        pid_file: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._argv = list(argv)
        self._env = dict(env)
        self._cwd = cwd
        self._run_as = run_as
        self._stop = tuple(stop)
        self._pid_file = pid_file
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def returncode(self) -> int | None:
        """The exit code; None while it runs or before it was started."""
        return self._process.poll() if self._process else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Start it, after stopping what an earlier ``up`` left of it.

        Raises:
            EmbeddedError: when the operating system refuses.
        """
        if self._pid_file is not None:
            await stop_leftover(self._pid_file, self._stop)
        log = _open_log(self.log)
        try:
            self._log_start = os.fstat(log).st_size
            user = self._run_as
            self._process = subprocess.Popen(  # noqa: ASYNC220 returns at once; waiting polls
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._env,
                cwd=self._cwd,
                start_new_session=True,
                user=user.uid if user else None,
                group=user.gid if user else None,
                extra_groups=[] if user else None,
                umask=0o077,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise EmbeddedError(
                f"{self.name} can not be started: {error}.",
                hint=f"The program is {self._argv[0]}.",
            ) from error
        finally:
            os.close(log)
        if self._pid_file is not None:
            _write_pid_file(self._pid_file, self._process.pid)

    async def stop(self) -> None:
        """Stop it and all it started; returns when nothing of it runs. Idempotent."""
        if self._process is None:
            return
        process = self._process
        try:
            found = psutil.Process(process.pid) if process.poll() is None else None
        except psutil.NoSuchProcess:
            found = None
        if found is not None:
            await stop_tree(found, self._stop, reap=process)
        process.wait()
        if self._pid_file is not None:
            self._pid_file.unlink(missing_ok=True)

    def read_log_tail(self, lines: int = 12) -> str:
        """Return the last lines that this start wrote to its log."""
        try:
            with self.log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(self._log_start, size - _MAX_TAIL_BYTES))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


async def stop_leftover(pid_file: Path, stop: Sequence[StopStep] = DEFAULT_STOP) -> bool:
    """Stop the process that a pid file names if it is still that one; say whether it was."""
    process = _find_leftover(pid_file)
    if process is not None:
        await stop_tree(process, stop)
    pid_file.unlink(missing_ok=True)  # noqa: ASYNC240 one small local file
    return process is not None


async def stop_tree(
    process: psutil.Process,
    stop: Sequence[StopStep] = DEFAULT_STOP,
    *,
    reap: subprocess.Popen[bytes] | None = None,
) -> None:
    """Signal a process until it ends, then kill what is left of its descendants.

    Args:
        process: psutil's handle, which no later process of the same pid can be mistaken for.
        stop: signals in order; SIGKILL follows them.
        reap: the Popen, when it is our own child: an ended child stays until it is waited for.
    """
    family = _family(process)
    for step in (*stop, StopStep(signal.SIGKILL, 30.0)):
        try:
            process.send_signal(step.signal)
        except psutil.NoSuchProcess:
            break
        if await _wait_gone([process], step.grace_s, reap):
            break
        family |= _family(process)
    rest = [child for child in family if child.is_running()]
    for child in rest:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    if not await _wait_gone([process, *rest], 30.0, reap):
        raise EmbeddedError(f"Process {process.pid} does not end, not even by SIGKILL.")


def _find_leftover(pid_file: Path) -> psutil.Process | None:
    try:
        stored = json.loads(pid_file.read_text(encoding="utf-8"))
        process = psutil.Process(int(stored["pid"]))
        is_ours = abs(process.create_time() - float(stored["created"])) < _CLOCK_SLACK_S
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None
    return process if is_ours else None


def _family(process: psutil.Process) -> set[psutil.Process]:
    try:
        return set(process.children(recursive=True))
    except psutil.Error:
        return set()


async def _wait_gone(
    processes: Sequence[psutil.Process], timeout_s: float, reap: subprocess.Popen[bytes] | None
) -> bool:
    deadline = time.monotonic() + timeout_s
    while True:
        if reap is not None:
            reap.poll()
        if not any(is_alive(process) for process in processes):
            return True
        if time.monotonic() > deadline:
            return False
        await pause()


def is_alive(process: psutil.Process) -> bool:
    """Say whether it runs; a zombie, which only its parent can bury, does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _write_pid_file(path: Path, pid: int) -> None:
    try:
        created = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return  # it ended at once; whoever waits for it to be ready says so
    write_private(path, json.dumps({"pid": pid, "created": created}))


def _open_log(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and path.stat().st_size > _MAX_LOG_BYTES:
            path.replace(path.with_name(path.name + ".1"))
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.fchmod(handle, 0o600)
    except OSError as error:
        raise EmbeddedError(
            f"The log {path} can not be written: {error.strerror}.",
            hint="Make its directory writable for you.",
        ) from error
    return handle


async def pause() -> None:
    """Wait for a moment before asking again whether something is up or gone."""
    await asyncio.sleep(_POLL_S)


def last_line(text: str) -> str:
    """Return the last line that says something, without its full stop."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else ""
