"""launchd: a plist for each job in the user's ``LaunchAgents``, loaded into the login session.

``launchctl bootstrap`` and ``bootout`` answer before the change is complete, so each is followed by
``print`` until it shows.
"""

from __future__ import annotations

import os
import plistlib
import re
import sys
import time
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final
from xml.parsers.expat import ExpatError
from zoneinfo import ZoneInfo

from ..declare import JobSpec
from ..errors import TimerError
from ..loader import shipped_root
from .installation import Installation
from .machine import read_machine_zone
from .model import InstalledTimer, Loaded, ManagerName, Ran, RunProgram, run_program
from .wakes import Wake, list_wakes

PREFIX: Final = "han-solo.job."
"""Of labels and file names; what follows is the job's name."""

_NOT_FOUND: Final = 113
"""``launchctl print`` of a label that is not loaded."""

_SETTLE_S: Final = 35.0
"""A job that runs is given 30 s to end (``ExitTimeOut`` in the template)."""

_POLL_S: Final = 0.2


class Launchd:
    """The launchd of the user who runs this."""

    name: ManagerName = "launchd"

    def __init__(
        self,
        *,
        folder: Path | None = None,
        run: RunProgram = run_program,
        user_id: int | None = None,
        platform: str = sys.platform,
        sleep: Callable[[float], None] = time.sleep,
        machine_zone: ZoneInfo | None = None,
    ) -> None:
        self.folder = folder or Path.home() / "Library" / "LaunchAgents"
        self._run = run
        self._user_id = os.getuid() if user_id is None else user_id
        self._platform = platform
        self._sleep = sleep
        self._machine_zone = machine_zone

    def require(self) -> None:
        """Refuse on another system, and for root, who has no login session."""
        if self._platform != "darwin":
            raise TimerError(
                "launchd is a part of macOS, and this is another system.",
                hint="Use `han-solo systemd`, or let `han-solo daemon` run the jobs.",
            )
        if self._user_id == 0:
            raise TimerError(
                "root has no login session that launchd could run jobs in.",
                hint="Run it as the user whose agent it is, without sudo.",
            )

    def render(self, spec: JobSpec, installation: Installation) -> Mapping[Path, bytes]:
        """Return the plist of a job."""
        clock_zone = self._machine_zone or read_machine_zone()
        wakes = list_wakes(spec.when, installation.zone, clock_zone, date.today())  # noqa: DTZ011
        log = str(installation.log_file(spec.name))
        common: dict[str, Any] = plistlib.loads(
            (shipped_root() / "launchd" / "job.plist").read_bytes()
        )
        return {
            self._file(spec.name): plistlib.dumps(
                {
                    "Label": PREFIX + spec.name,
                    "ProgramArguments": installation.build_command(spec.name, log=True),
                    "WorkingDirectory": str(installation.home),
                    "EnvironmentVariables": dict(installation.environment),
                    "StartCalendarInterval": [_interval(wake) for wake in wakes],
                    # What an interpreter that does not start says; the command rotates the file.
                    "StandardOutPath": log,
                    "StandardErrorPath": log,
                    **common,
                },
                sort_keys=False,
            )
        }

    def find_installed(self) -> tuple[InstalledTimer, ...]:
        """Read the plists that are there."""
        return tuple(_read(path) for path in sorted(self.folder.glob(f"{PREFIX}*.plist")))

    def ask(self, job: str) -> Loaded:
        """Ask launchd how a job's label stands."""
        shown = self._launchctl("print", self._target(job))
        if shown.code:
            return Loaded(is_loaded=False)
        exit_code = re.search(r"^\s*last exit code = (\d+)", shown.text, re.MULTILINE)
        return Loaded(
            is_loaded=True,
            is_running=re.search(r"^\s*state = running$", shown.text, re.MULTILINE) is not None,
            last_exit=int(exit_code[1]) if exit_code else None,
        )

    def load(self, job: str) -> None:
        """Load the plist; a label that was once disabled is enabled first, or it would not load."""
        self._launchctl("enable", self._target(job))
        done = self._launchctl("bootstrap", self._domain, str(self._file(job)))
        if done.code or not self._wait_until(job, loaded=True):
            raise TimerError(
                f"launchd did not take the job {job}: {done.text or 'it does not show it'}",
                hint="Log in at the Mac's own screen (over ssh alone there is no such session), "
                f"and look at `plutil -lint {self._file(job)}`.",
            )

    def unload(self, job: str) -> None:
        """Unload the label; its process, if it runs, is asked to end."""
        done = self._launchctl("bootout", self._target(job))
        if not self._wait_until(job, loaded=False):
            raise TimerError(
                f"launchd did not let go of the job {job}: {done.text or 'it still shows it'}",
                hint=f"Try again, or run: launchctl bootout {self._target(job)}",
            )

    def forget(self) -> None:
        """Do nothing: what is unloaded is forgotten."""

    @property
    def _domain(self) -> str:
        return f"gui/{self._user_id}"

    def _target(self, job: str) -> str:
        return f"{self._domain}/{PREFIX}{job}"

    def _file(self, job: str) -> Path:
        return self.folder / f"{PREFIX}{job}.plist"

    def _launchctl(self, *arguments: str) -> Ran:
        return self._run(["/bin/launchctl", *arguments])

    def _wait_until(self, job: str, *, loaded: bool) -> bool:
        for _ in range(int(_SETTLE_S / _POLL_S)):
            if (self._launchctl("print", self._target(job)).code == 0) == loaded:
                return True
            if loaded:  # what bootstrap took is there at once
                return False
            self._sleep(_POLL_S)
        return False


def _interval(wake: Wake) -> dict[str, int]:
    """Return an entry of ``StartCalendarInterval``; a key that is left out matches every time."""
    every_hour = {"Minute": wake.minute}
    return every_hour if wake.hour is None else {"Hour": wake.hour, **every_hour}


def _read(path: Path) -> InstalledTimer:
    job = path.name.removeprefix(PREFIX).removesuffix(".plist")
    try:
        content = plistlib.loads(path.read_bytes())
        environment = content["EnvironmentVariables"]
        agent_id = environment.get("HAN_SOLO_AGENT_ID")
        return InstalledTimer(
            manager="launchd",
            job=job,
            files=(path,),
            home=Path(environment["HAN_SOLO_HOME"]),
            interpreter=Path(content["ProgramArguments"][0]),
            agent_id=str(agent_id) if agent_id else None,
        )
    except (
        OSError,
        plistlib.InvalidFileException,
        ExpatError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        return InstalledTimer("launchd", job, (path,), fault=f"{path} can not be read: {error}.")
