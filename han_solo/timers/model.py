"""Timers as values, and the one way in which the programs that keep them are run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol

from ..declare import JobSpec
from ..errors import TimerError
from .installation import Installation

ManagerName = Literal["launchd", "systemd"]

_DEADLINE_S: Final = 30.0
"""For one call of ``launchctl`` or ``systemctl``, which answer in milliseconds."""


class Ran(NamedTuple):
    """What came of a program: its exit code and all that it printed."""

    code: int
    text: str


RunProgram = Callable[[Sequence[str]], Ran]


def run_program(argv: Sequence[str]) -> Ran:
    """Run ``launchctl`` or ``systemctl``.

    Raises:
        TimerError: it is not here, or did not answer.
    """
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=_DEADLINE_S,
            check=False,
        )
    except OSError as error:
        raise TimerError(
            f"{argv[0]} can not be run: {error.strerror}.",
            hint="Where there is no such program, let `han-solo daemon` run the jobs.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise TimerError(
            f"{argv[0]} {argv[1]} did not answer within {_DEADLINE_S:g} s.",
            hint="Try again; if it stays so, log in anew.",
        ) from error
    return Ran(done.returncode, done.stdout.strip())


@dataclass(frozen=True, slots=True)
class InstalledTimer:
    """A timer as its files say; what a file does not say is None.

    ``fault`` is a sentence where they can not be read.
    """

    manager: ManagerName
    job: str
    files: tuple[Path, ...]
    home: Path | None = None
    interpreter: Path | None = None
    agent_id: str | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class TimersView:
    """The timers of this user, and the home and interpreter of the process that looks."""

    home: Path
    interpreter: Path
    installed: tuple[InstalledTimer, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """How a timer stands with its manager. ``last_exit`` is the job's last exit code."""

    is_loaded: bool
    is_running: bool = False
    last_exit: int | None = None


class Manager(Protocol):
    """launchd or systemd. Each call may raise ``TimerError``."""

    @property
    def name(self) -> ManagerName: ...
    def require(self) -> None:
        """Refuse where it is not at home."""

    def render(self, spec: JobSpec, installation: Installation) -> Mapping[Path, bytes]:
        """Return the files of a job's timer."""

    def find_installed(self) -> tuple[InstalledTimer, ...]:
        """Read the files that are there, of any installation."""

    def ask(self, job: str) -> Loaded:
        """Say how a job's timer stands."""

    def load(self, job: str) -> None:
        """Begin to wake the job by its files."""

    def unload(self, job: str) -> None:
        """Stop waking it; its files stay."""

    def forget(self) -> None:
        """Let go of what was read from files that are gone."""


def is_same_home(first: Path, second: Path) -> bool:
    """Say whether two paths are one directory, links seen through."""
    return first.resolve() == second.resolve()


def is_same_interpreter(first: Path, second: Path) -> bool:
    """Say whether two paths start one environment's Python; it has several names in its folder."""
    return first.parent == second.parent and first.resolve() == second.resolve()
