"""A clone of this checkout in another folder, with an empty home: what a newcomer has.

Used by the acceptance tests and by ``scripts/bench up``. It clones what is committed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

TOP = Path(__file__).resolve().parents[1]
_TIMEOUT_S = 900
_KEPT = ("PATH", "LANG", "SSL_CERT_FILE", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_CERT")


@dataclass(frozen=True)
class Done:
    """One command that ended."""

    code: int
    output: str
    seconds: float


@dataclass(frozen=True)
class FreshClone:
    """A clone and the folders it may use."""

    checkout: Path
    root: Path

    def environment(self, **more: str) -> dict[str, str]:
        """Return what a newcomer's shell has: no setting of ours, no key, an empty home."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {
            **kept,
            "HOME": str(self.root / "home"),
            "HAN_SOLO_HOME": str(self.root / "state"),
            "HAN_SOLO_CACHE": str(self.root / "cache"),
            **more,
        }

    def run(self, *command: str, **more: str) -> Done:
        """Run a command in the clone and return how it ended."""
        began = time.monotonic()
        done = subprocess.run(
            command,
            cwd=self.checkout,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        return Done(done.returncode, done.stdout, time.monotonic() - began)


@contextmanager
def fresh_clone() -> Iterator[FreshClone]:
    """Clone into a new folder, removed at the end."""
    root = Path(tempfile.mkdtemp(prefix="han-solo-clone-"))
    root.chmod(0o711)  # as root, Postgres' own user passes through it
    try:
        (root / "home").mkdir(mode=0o700)
        checkout = root / "checkout"
        subprocess.run(
            ["git", "clone", "--quiet", str(TOP), str(checkout)],
            check=True,
            capture_output=True,
            text=True,
        )
        yield FreshClone(checkout, root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def processes_of(path: Path) -> list[str]:
    """Return the command lines of the processes that work on a directory or below it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            clues = [*process.cmdline(), process.cwd(), *process.environ().values()]
            if process.pid != os.getpid() and any(str(path) in clue for clue in clues):
                found.append(" ".join(process.cmdline()))
    return found
