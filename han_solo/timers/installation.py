"""What a timer's command needs to run from nothing: interpreter, directory, environment, secrets.

A timer starts a process with next to no environment and in another directory. So what the settings
were read from is written down, paths made absolute; what is secret goes into a 0600 file in the
home, and the timer's own file, which backups and support requests copy, holds the path of that file
only.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import dotenv
from pydantic import AliasChoices, SecretStr

from ..home import Home, write_private
from ..settings import Settings
from ..settings_loading import find_env_file

SECRETS_FILE: Final = "jobs.env"
"""Under ``secrets/`` of the home."""

_PATH: Final = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
"""For jobs of an operator's own that start programs; ours need none."""

_URL_WITH_PASSWORD: Final = re.compile(r"://[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Installation:
    """One installation, as its timers are written for it.

    ``zone`` is the one that due times are counted in; ``secrets`` are variables that only
    ``secrets_file`` holds.
    """

    home: Path
    interpreter: Path
    zone: ZoneInfo
    environment: Mapping[str, str]
    secrets: Mapping[str, str] = field(repr=False)

    @property
    def secrets_file(self) -> Path:
        return self.home / "secrets" / SECRETS_FILE

    def log_file(self, job: str) -> Path:
        return self.home / "logs" / f"job-{job}.log"

    def build_command(self, job: str, *, log: bool) -> list[str]:
        """Build the command of a job: absolute, and deaf to what lies in the directory it is in."""
        command = [str(self.interpreter), "-P", "-m", "han_solo", "jobs", "run", job, "--if-due"]
        return [*command, "--log", str(self.log_file(job))] if log else command

    def build_line(self, job: str) -> str:
        """Build a line for a shell or for cron that runs a job in an empty environment."""
        baked = [f"{name}={value}" for name, value in self.environment.items()]
        return shlex.join(["env", "-i", *baked, *self.build_command(job, log=False)])

    @property
    def secrets_text(self) -> str:
        """Return what the file of secrets has to hold."""
        head = "# Written by `han-solo launchd install` or `han-solo systemd install`.\n"
        lines = (f"{name}={_quote(value)}" for name, value in sorted(self.secrets.items()))
        return head + "\n".join(lines)

    def prepare(self) -> None:
        """Make the home, and the file of secrets (0600) unless it is as it should be."""
        Home(self.home).create()
        if not self.has_written_secrets():
            write_private(self.secrets_file, self.secrets_text)

    def has_written_secrets(self) -> bool:
        """Say whether the file of secrets is there and is what would be written."""
        try:
            return self.secrets_file.read_text(encoding="utf-8") == self.secrets_text + "\n"
        except OSError:
            return False


def build_installation(settings: Settings) -> Installation:
    """Build it from the settings of this process and from where they were read."""
    home = settings.at.root
    environment: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for variable, value, is_secret in _list_set(settings):
        (secrets if is_secret else environment)[variable] = value
    environment |= {
        "HAN_SOLO_HOME": str(home),
        "HAN_SOLO_CACHE": str(settings.cache.expanduser().absolute()),
        "HAN_SOLO_TIMEZONE": settings.zone.key,
        "HAN_SOLO_ENV_FILE": str(home / "secrets" / SECRETS_FILE),
        "PATH": f"{Path(sys.executable).parent}:{_PATH}",
    }
    return Installation(
        home=home,
        interpreter=Path(sys.executable).absolute(),
        zone=settings.zone,
        environment=dict(sorted(environment.items())),
        secrets=secrets,
    )


def _list_set(settings: Settings) -> Iterator[tuple[str, str, bool]]:
    """Return each setting that was set: its variable, its value as written, whether it is secret.

    The text is taken as the operator wrote it, since what is read from it again must be the same.
    """
    hints = typing.get_type_hints(Settings, include_extras=True)
    written = {
        name.upper(): value
        for source in (dotenv.dotenv_values(find_env_file()), os.environ)  # the latter wins
        for name, value in source.items()
        if value
    }
    for name in sorted(settings.model_fields_set):
        variables = _variables(name)
        text = next((written[variable] for variable in variables if variable in written), None)
        if text is None:
            continue
        kind = repr(hints[name])
        if "pathlib" in kind:  # Path, Path or None, or several
            text = _absolute(getattr(settings, name))
        is_secret = SecretStr.__name__ in kind or bool(_URL_WITH_PASSWORD.search(text))
        yield variables[0], text, is_secret


def _variables(name: str) -> list[str]:
    alias = Settings.model_fields[name].validation_alias
    if isinstance(alias, AliasChoices):
        return [str(choice) for choice in alias.choices]
    return [f"HAN_SOLO_{name.upper()}"]


def _absolute(value: Any) -> str:
    paths = value if isinstance(value, tuple) else (value,)
    return os.pathsep.join(str(Path(path).expanduser().absolute()) for path in paths)


def _quote(value: str) -> str:
    """Write a value so that it is read back to the character; `${` would be filled in."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "${:-$}{")
    return f"'{escaped}'"
