"""Letta's own Python environment: built once with uv from a lock with hashes, then reused.

It is apart from ours because its pins are (pydantic, redis, anthropic), and because Letta's custom
tools run in it. A virtual environment holds absolute paths, so it is built in its place; a marker
written last tells a whole one from a half one, and a file lock keeps two builders apart.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

import filelock
import uv

from ..errors import EmbeddedError
from .processes import last_line
from .progress import Progress, StepHandle

LETTA_VERSION: Final = "0.16.8"

_MARKER: Final = ".complete"
_LOCK_POLL_S: Final = 0.5
_DOWNLOADING: Final = re.compile(r"^Downloading (?P<name>\S+) \((?P<mib>[\d.]+)(?P<unit>[KM])iB\)")
_DOWNLOADED: Final = re.compile(r"^ ?Downloaded (?P<name>\S+)")


async def ensure_letta_env(cache: Path, progress: Progress) -> Path:
    """Return the Python of Letta's environment, built if it is not there yet.

    The directory's name holds the version, the lock's hash and ours Python's version, so a new
    release builds a new one beside the old.

    Raises:
        EmbeddedError: it can not be built; carries uv's last line and where the rest is.
    """
    lock = resources.files(__package__).joinpath("letta.lock").read_bytes()
    digest = hashlib.sha256(lock).hexdigest()[:12]
    version = f"py{sys.version_info.major}.{sys.version_info.minor}"
    environment = cache / f"letta-{LETTA_VERSION}-{digest}-{version}"
    step = progress.step("Letta's environment")
    if _is_whole(environment):
        step.done("reused")
        return _python(environment)
    try:
        _make_directory(cache)
        guard = filelock.FileLock(f"{environment}.lock", thread_local=False)
        await _acquire(guard, step)
        try:
            if not _is_whole(environment):
                await _Build(environment, lock, step).run()
        finally:
            guard.release()
    except EmbeddedError as error:
        step.failed(error.message)
        raise
    step.done(LETTA_VERSION)
    return _python(environment)


def _python(environment: Path) -> Path:
    return environment / "bin" / "python"


def _is_whole(environment: Path) -> bool:
    """Say whether it was built to the end and its interpreter is still installed."""
    return (environment / _MARKER).is_file() and os.access(_python(environment), os.X_OK)


def _make_directory(cache: Path) -> None:
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedError(
            f"The cache directory {cache} can not be made: {error.strerror}.",
            hint="Set HAN_SOLO_CACHE to a directory you may write.",
        ) from error


async def _acquire(guard: filelock.FileLock, step: StepHandle) -> None:
    while True:
        try:
            guard.acquire(timeout=0)
        except filelock.Timeout:
            step.update("another han-solo builds it")
            await asyncio.sleep(_LOCK_POLL_S)
        except OSError as error:
            raise EmbeddedError(
                f"{guard.lock_file} can not be written: {error.strerror}.",
                hint="Set HAN_SOLO_CACHE to a directory you may write.",
            ) from error
        else:
            return


@dataclass(frozen=True, slots=True)
class _Build:
    environment: Path
    lock: bytes
    step: StepHandle

    @property
    def log(self) -> Path:
        return self.environment.with_name(self.environment.name + ".log")

    async def run(self) -> None:
        """Build it; what an earlier build left half done is removed first."""
        shutil.rmtree(self.environment, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        tool = uv.find_uv_bin()
        await self._call(tool, "venv", "--no-project", "--python", _base_python(), self.environment)
        requirements = self.environment / "letta.lock"
        requirements.write_bytes(self.lock)
        await self._call(
            *(tool, "pip", "install", "--require-hashes", "--requirements", requirements),
            *("--python", _python(self.environment)),
        )
        (self.environment / _MARKER).touch()
        self.log.unlink(missing_ok=True)

    async def _call(self, *argv: str | Path) -> None:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=_uv_env(),
            cwd=self.environment.parent,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        sizes: dict[str, float] = {}
        try:
            with self.log.open("a", encoding="utf-8") as log:
                async for raw in process.stderr:
                    line = raw.decode("utf-8", "replace").rstrip()
                    log.write(line + "\n")
                    self._follow(line, sizes)
            code = await process.wait()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        if code != 0:
            said = await asyncio.to_thread(self.log.read_text, encoding="utf-8")
            reason = "\n".join(line for line in said.splitlines() if not line.startswith("hint:"))
            raise EmbeddedError(
                f"Letta's environment can not be built: {last_line(reason)}.",
                hint=f"See that the package registry is reached and 1 GB is free, then start "
                f"again; all that uv said is in {self.log}.",
            )

    def _follow(self, line: str, sizes: dict[str, float]) -> None:
        """Move the bar by what uv says; it names the packages worth a line, with their sizes."""
        if found := _DOWNLOADING.match(line):
            sizes[found["name"]] = float(found["mib"]) / (1 if found["unit"] == "M" else 1024)
            self.step.set_total(sum(sizes.values()))
            self.step.update(f"{sum(sizes.values()):.0f} MiB")
        elif found := _DOWNLOADED.match(line):
            self.step.advance(sizes.get(found["name"], 0.0))
            self.step.update(found["name"])
        elif line.startswith(("Prepared", "Installed")):
            self.step.update("installing")


def _base_python() -> str:
    """Return the interpreter under our own environment; Letta's must not depend on ours."""
    return str(getattr(sys, "_base_executable", None) or sys.executable)


def _uv_env() -> dict[str, str]:
    """Return our environment, for proxies, registries and certificates, without our venv."""
    dropped = {"VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "UV_PYTHON", "PYTHONPATH", "PYTHONHOME"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "UV_NO_PROGRESS": "0", "NO_COLOR": "1", "UV_PYTHON_DOWNLOADS": "never"}
