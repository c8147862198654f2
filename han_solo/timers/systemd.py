"""systemd: a service and a timer for each job among the user's own units.

Times are written in UTC, which no hour is missing from; the journal keeps and rotates what the jobs
print.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Final
from zoneinfo import ZoneInfo

from ..declare import Daily, JobSpec
from ..errors import TimerError
from ..loader import shipped_root
from .installation import Installation
from .model import InstalledTimer, Loaded, ManagerName, Ran, RunProgram, run_program
from .wakes import Wake, list_wakes

PREFIX: Final = "han-solo-job-"
"""Of unit names; what follows is the job's name."""

_MARGIN_S: Final = 300
"""Beside the job's own deadline: for the start, the database, and the outcome to be stored."""

_UTC: Final = ZoneInfo("UTC")


class Systemd:
    """The user manager of the user who runs this."""

    name: ManagerName = "systemd"

    def __init__(
        self,
        *,
        folder: Path | None = None,
        run: RunProgram = run_program,
        platform: str = sys.platform,
    ) -> None:
        config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        self.folder = folder or Path(config) / "systemd" / "user"
        self._run = run
        self._platform = platform

    def require(self) -> None:
        """Refuse on a Mac, and where no user manager answers."""
        if self._platform == "darwin":
            raise TimerError(
                "A Mac has no systemd.", hint="Use `han-solo launchd`: it takes the same jobs."
            )
        shown = self._systemctl("show", "--property=Version")
        if shown.code:
            raise TimerError(
                f"systemd has no session for this user: {_first_line(shown.text)}",
                hint="Log in as the user itself (not with su or sudo), or run `loginctl "
                "enable-linger`; without systemd let `han-solo daemon` run the jobs.",
            )

    def render(self, spec: JobSpec, installation: Installation) -> Mapping[Path, bytes]:
        """Return the service and the timer of a job."""
        today = datetime.now(UTC).date()
        wakes = list_wakes(spec.when, installation.zone, _UTC, today)
        command = installation.build_command(spec.name, log=False)
        due = spec.when
        texts = {
            "service": _template("job.service").substitute(
                job=spec.name,
                command=" ".join(_quote(word, dollar="$$") for word in command),
                home=str(installation.home).replace("%", "%%"),
                environment="\n".join(
                    f"Environment={_quote(f'{name}={value}')}"
                    for name, value in installation.environment.items()
                ),
                deadline_s=int(spec.timeout_s) + _MARGIN_S,
            ),
            "timer": _template("job.timer").substitute(
                job=spec.name,
                due=f"daily at {due.at} {installation.zone.key}"
                if isinstance(due, Daily)
                else f"hourly at minute {due.minute}",
                wakes="\n".join(f"OnCalendar={_calendar(wake)}" for wake in wakes),
            ),
        }
        return {self._file(spec.name, kind): text.encode() for kind, text in texts.items()}

    def find_installed(self) -> tuple[InstalledTimer, ...]:
        """Read the units that are there."""
        names = {path.stem for path in self.folder.glob(f"{PREFIX}*") if path.suffix in _KINDS}
        return tuple(self._read(name.removeprefix(PREFIX)) for name in sorted(names))

    def ask(self, job: str) -> Loaded:
        """Ask systemd how the timer and the service of a job stand."""
        timer = self._show(job, "timer", "ActiveState")
        service = self._show(job, "service", "ActiveState", "ExecMainStatus", "Result")
        has_run = service.get("Result", "success") != "success" or service.get("ExecMainStatus")
        return Loaded(
            is_loaded=timer.get("ActiveState") == "active",
            is_running=service.get("ActiveState") in {"active", "activating", "deactivating"},
            last_exit=int(service.get("ExecMainStatus") or 0) if has_run else None,
        )

    def load(self, job: str) -> None:
        """Read the units anew and start the timer, now and at every login."""
        unit = f"{PREFIX}{job}.timer"
        done = self._systemctl("daemon-reload")
        if not done.code:
            done = self._systemctl("enable", "--now", unit)
        if not done.code:  # one that was active keeps the times of before until it is started anew
            done = self._systemctl("restart", unit)
        if done.code or not self.ask(job).is_loaded:
            raise TimerError(
                f"systemd did not take the job {job}: {_first_line(done.text) or 'not active'}",
                hint=f"Look at: systemctl --user status {unit}",
            )

    def unload(self, job: str) -> None:
        """Stop the timer; a run that goes on is left to end."""
        unit = f"{PREFIX}{job}.timer"
        done = self._systemctl("disable", "--now", unit)
        if self.ask(job).is_loaded:
            raise TimerError(
                f"systemd did not let go of the job {job}: {_first_line(done.text)}",
                hint=f"Run: systemctl --user disable --now {unit}",
            )

    def forget(self) -> None:
        """Have systemd read the units anew; until then it shows those that are gone."""
        self._systemctl("daemon-reload")

    def _file(self, job: str, kind: str) -> Path:
        return self.folder / f"{PREFIX}{job}.{kind}"

    def _systemctl(self, *arguments: str) -> Ran:
        return self._run(["systemctl", "--user", *arguments])

    def _show(self, job: str, kind: str, *names: str) -> dict[str, str]:
        unit = f"{PREFIX}{job}.{kind}"
        shown = self._systemctl("show", unit, f"--property={','.join(names)}")
        lines = (line.partition("=") for line in shown.text.splitlines())
        return {name: value for name, _, value in lines if value}

    def _read(self, job: str) -> InstalledTimer:
        files = tuple(
            path for kind in ("service", "timer") if (path := self._file(job, kind)).exists()
        )
        path = self._file(job, "service")
        try:
            unit = _read_unit(path)
            (interpreter, *_) = shlex.split(unit["ExecStart"][-1])
            pairs = [
                word.partition("=") for line in unit["Environment"] for word in shlex.split(line)
            ]
            environment = {name: value.replace("%%", "%") for name, _, value in pairs}
            return InstalledTimer(
                manager="systemd",
                job=job,
                files=files,
                home=Path(environment["HAN_SOLO_HOME"]),
                interpreter=Path(interpreter.replace("%%", "%").replace("$$", "$")),
                agent_id=environment.get("HAN_SOLO_AGENT_ID"),
            )
        except (OSError, LookupError, ValueError) as error:
            return InstalledTimer("systemd", job, files, fault=f"{path} can not be read: {error}.")


_KINDS: Final = frozenset({".service", ".timer"})


def _read_unit(path: Path) -> dict[str, list[str]]:
    """Return the assignments of a unit file, each name with all its values."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith(("#", ";")):
            found.setdefault(name.strip(), []).append(value.strip())
    return found


def _template(name: str) -> Template:
    return Template((shipped_root() / "launchd" / name).read_text(encoding="utf-8"))


def _calendar(wake: Wake) -> str:
    hour = "*" if wake.hour is None else f"{wake.hour:02}"
    return f"*-*-* {hour}:{wake.minute:02}:00 UTC"


def _quote(word: str, *, dollar: str = "$") -> str:
    """Write a word as systemd reads it: quoted, its specifiers and variables left alone."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("%", "%%").replace("$", dollar) + '"'


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
