"""The OS user that Postgres runs as when we run as root, and what that user can reach.

Postgres refuses root. Nothing here changes a mode of what exists: a directory that is closed to the
user is found by asking the operating system, as that user, and then named.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import EmbeddedError

_NAME: Final = "han-solo-db"
_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class OsUser:
    name: str
    uid: int
    gid: int


def ensure_os_user() -> OsUser | None:
    """Return the user that Postgres runs as, made if need be; None when we are not root.

    Raises:
        EmbeddedError: root, and there is no way here to make a system user.
    """
    if os.geteuid() != 0:
        return None
    found = _look_up() or _create()
    if found is None:
        raise EmbeddedError(
            f"Postgres does not run as root, and the system user {_NAME} can not be made here.",
            hint="Run han-solo as an ordinary user, or make that user first.",
        )
    return found


def _look_up() -> OsUser | None:
    try:
        entry = pwd.getpwnam(_NAME)
    except KeyError:
        return None
    return OsUser(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _create() -> OsUser | None:
    commands = (  # shadow's, and busybox's as on Alpine
        ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"],
        ["adduser", "-S", "-D", "-H", "-h", "/nonexistent"],
    )
    for command in commands:
        if shutil.which(command[0]) is None:
            continue
        shell = ["-s", "/bin/false"]
        subprocess.run(
            [*command, *shell, _NAME], capture_output=True, timeout=_TIMEOUT_S, check=False
        )
        found = _look_up()  # another process may have made it at this moment: ask for the result
        if found is not None:
            return found
    return None


def find_closed_parent(user: OsUser, path: Path) -> Path | None:
    """Return the outermost existing directory above ``path`` that the user can not pass through."""
    for parent in reversed(path.absolute().parents):
        if not parent.is_dir():
            return None
        if not _succeeds(user, ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(parent)]):
            return parent
    return None


def can_run(user: OsUser, program: Path) -> bool:
    """Say whether ``program --version`` works for the user: the way to it, mode and libraries."""
    return _succeeds(user, [str(program), "--version"])


def _succeeds(user: OsUser, argv: list[str]) -> bool:
    try:
        done = subprocess.run(
            argv,
            user=user.uid,
            group=user.gid,
            extra_groups=[],
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
