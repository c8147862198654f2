"""The data directory of the embedded Postgres: its owner, its modes, and its first making."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import psutil

from ..errors import EmbeddedError
from .os_user import OsUser
from .processes import last_line

_INITDB_TIMEOUT_S: Final = 180.0


def ensure_directory(path: Path, user: OsUser | None) -> None:
    """Make the directory above the data, 0700 and owned by who runs Postgres (None: us)."""
    path.mkdir(exist_ok=True, mode=0o700)
    owner = path.stat().st_uid
    wanted = user.uid if user else os.geteuid()
    if user is not None and owner == 0:
        os.chown(path, user.uid, user.gid)
    elif owner != wanted:
        raise EmbeddedError(
            f"{path} belongs to another user (uid {owner}).",
            hint="Run han-solo as the user that owns it, or set HAN_SOLO_HOME to another place.",
        )
    path.chmod(0o700)


def init_data(data: Path, programs: Path, user: OsUser | None, password: str) -> None:
    """Make the data directory beside its place and rename it: a killed initdb leaves no half one.

    Args:
        data: where it goes; its parent belongs to the user.
        programs: the directory of ``initdb``.
        user: who runs it; None: we do.
        password: the superuser's.
    """
    partial = data.with_name("data.partial")
    shutil.rmtree(partial, ignore_errors=True)
    password_file = data.with_name("initdb-password")
    password_file.unlink(missing_ok=True)
    handle = os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(password + "\n")
            if user is not None:
                os.fchown(file.fileno(), user.uid, user.gid)
        done = subprocess.run(
            _build_argv(programs, partial, password_file),
            user=user.uid if user else None,
            group=user.gid if user else None,
            extra_groups=[] if user else None,
            env=build_env(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_INITDB_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EmbeddedError(f"initdb can not be run: {error}.") from error
    finally:
        password_file.unlink(missing_ok=True)
    if done.returncode != 0:
        shutil.rmtree(partial, ignore_errors=True)
        raise EmbeddedError(
            f"Postgres can not make its data directory {data}: {last_line(done.stdout)}.",
            hint="Free space, or set HAN_SOLO_HOME to another directory.",
        )
    partial.rename(data)


def find_postmaster(data: Path) -> psutil.Process | None:
    """Return the server that runs on the data directory, known by its pid file.

    After a crash of the machine the file may name a pid that another program has by now. Postgres
    would refuse to start for as long as that program runs, so the file is then removed, unless a
    process of Postgres still works in the directory.
    """
    pid_file = data / "postmaster.pid"
    try:
        process = psutil.Process(int(pid_file.read_text(encoding="utf-8").split()[0]))
        if _serves(process, data):
            return process
    except (OSError, ValueError, IndexError, psutil.Error):
        return None  # none runs, or it is another user's: Postgres itself can tell that
    if not any(_works_in(other, data) for other in psutil.process_iter()):
        pid_file.unlink(missing_ok=True)
    return None


def _serves(process: psutil.Process, data: Path) -> bool:
    arguments = process.cmdline()
    if "postgres" not in process.name() or "-D" not in arguments[:-1]:
        return False
    return Path(arguments[arguments.index("-D") + 1]).resolve() == data.resolve()


def _works_in(process: psutil.Process, data: Path) -> bool:
    try:
        return "postgres" in process.name() and Path(process.cwd()) == data.resolve()
    except psutil.Error:
        return False


def build_env() -> dict[str, str]:
    """Return the whole environment of Postgres' programs."""
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


def _build_argv(programs: Path, data: Path, password_file: Path) -> list[str]:
    return [
        str(programs / "initdb"),
        f"--pgdata={data}",
        "--username=postgres",
        "--auth=scram-sha-256",
        f"--pwfile={password_file}",
        "--encoding=UTF8",
        "--locale=C",
        # The same order and case rules on every machine, whatever locales it has.
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
    ]
