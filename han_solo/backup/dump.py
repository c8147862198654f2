"""``pg_dump`` and ``pg_restore``, from the wheel of the embedded Postgres: newer than any server.

Passwords go through the environment of the process and never through its arguments, which every
user of the machine can read.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..embedded.postgres_binaries import find_programs
from ..errors import HanSoloError


class BackupFailed(HanSoloError):
    """A backup could not be made, or one that was made can not be read."""


async def dump_database(url: str, target: Path) -> None:
    """Write a database into one file, compressed, in the format of ``pg_restore``.

    Raises:
        BackupFailed: carries what ``pg_dump`` said.
    """
    # Extensions belong to the database that it is restored into, and only its owner may touch them.
    await _run(
        url,
        "pg_dump",
        "--format=custom",
        "--no-owner",
        "--no-acl",
        "--exclude-extension=*",
        f"--file={target}",
    )
    target.chmod(0o600)  # noqa: ASYNC240 one small local file


async def list_tables(dump: Path) -> tuple[str, ...]:
    """Return the tables whose rows a dump holds; reading its table of contents proves it whole.

    Raises:
        BackupFailed: the file is damaged.
    """
    said = await _run(None, "pg_restore", "--list", str(dump))
    rows = [line.split() for line in said.splitlines() if " TABLE DATA " in line]
    return tuple(sorted(f"{row[5]}.{row[6]}" for row in rows))


async def restore_database(dump: Path, url: str) -> None:
    """Load a dump into an empty database, whole or not at all.

    Raises:
        BackupFailed: nothing was loaded; carries what ``pg_restore`` said.
    """
    await _run(
        url,
        "pg_restore",
        "--no-owner",
        "--no-acl",
        "--single-transaction",
        "--exit-on-error",
        f"--dbname={_name(url)}",
        str(dump),
    )


async def _run(url: str | None, program: str, *arguments: str) -> str:
    path = find_programs(None, copies=()) / program
    process = await asyncio.create_subprocess_exec(
        str(path),
        *arguments,
        env={**os.environ, **(_environment(url) if url else {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        why = err.decode("utf-8", "replace").strip().splitlines()
        raise BackupFailed(
            f"{program} failed: {why[-1] if why else f'exit code {process.returncode}'}",
            hint="See that Postgres answers and that there is room on the disk.",
        )
    return out.decode("utf-8", "replace")


def _environment(url: str) -> dict[str, str]:
    """Return libpq's variables for a URL."""
    parts = urlsplit(url)
    given = {
        "PGHOST": parts.hostname,
        "PGPORT": str(parts.port) if parts.port else None,
        "PGUSER": unquote(parts.username) if parts.username else None,
        "PGPASSWORD": unquote(parts.password) if parts.password else None,
        "PGDATABASE": _name(url),
    }
    options = dict(
        pair.split("=", 1) for pair in parts.query.split("&") if pair.startswith("sslmode=")
    )
    if "sslmode" in options:
        given["PGSSLMODE"] = options["sslmode"]
    return {name: value for name, value in given.items() if value}


def _name(url: str) -> str:
    return unquote(urlsplit(url).path.lstrip("/"))
