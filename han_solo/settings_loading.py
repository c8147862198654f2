"""Reading the settings, and saying in one sentence what is wrong with them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pydantic import ValidationError

from .errors import SettingsError
from .settings import Settings


def load_settings() -> Settings:
    """Read the settings.

    Raises:
        SettingsError: names each variable that is wrong and why.
    """
    env_file = find_env_file()
    try:
        return Settings(_env_file=env_file)
    except ValidationError as error:
        faults = "; ".join(
            f"{_variable(fault['loc'])}: {_part(fault['loc'])}"
            f"{fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors()
        )
        raise SettingsError(
            f"The settings can not be used: {faults}.",
            hint="Mend the environment or .env; docs/reference/settings.md lists them all.",
        ) from error


def find_env_file() -> Path:
    """Return the file that is read beside the environment; ``.env`` may be missing.

    Raises:
        SettingsError: another is set, and it is not there or others may read it.
    """
    chosen = os.environ.get("HAN_SOLO_ENV_FILE")
    if not chosen:
        return Path(".env")
    path = Path(chosen).expanduser()
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        with path.open("rb"):
            pass
    except OSError as error:
        raise SettingsError(
            f"HAN_SOLO_ENV_FILE={path} can not be read: {error.strerror}.",
            hint="Name a file that is there; `han-solo launchd install` and `han-solo systemd "
            "install` write the one of the timers anew.",
        ) from error
    if mode & 0o077:
        raise SettingsError(
            f"HAN_SOLO_ENV_FILE={path} holds secrets, and others may read it (mode {mode:04o}).",
            hint=f"Run: chmod 600 {path}",
        )
    return path


def _variable(location: tuple[int | str, ...]) -> str:
    name = str(location[0]) if location else "?"
    return name if name.isupper() else f"HAN_SOLO_{name.upper()}"


def _part(location: tuple[int | str, ...]) -> str:
    """Name the part of a list of pairs that is at fault."""
    return "".join(f"{part}: " for part in location[1:] if isinstance(part, str))
