"""A backup: dumps and plain files in a directory of its own, with a manifest that proves it whole.

It is made under another name and takes its own only at the end, so a directory that is there is a
backup that was finished. What can not be reached from here (the database of a Letta that we did not
start) is named in the manifest, not left out in silence.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ..connections import LETTA_DATABASE, LETTA_ROLE, SECRET_OF_ROLE, Connections, postgres_url
from ..errors import NotFound
from ..home import write_private
from ..settings import Settings
from ..store.database import Database
from .dump import BackupFailed, dump_database, list_tables
from .export import export_store

MANIFEST: Final = "manifest.json"
_PARTIAL: Final = ".partial-"
_NAME: Final = "%Y-%m-%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class Backup:
    """One backup that was finished."""

    path: Path
    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def bytes(self) -> int:
        return sum(int(file["bytes"]) for file in self.manifest["files"].values())


def backups_directory(settings: Settings) -> Path:
    """Return where backups lie."""
    return (settings.backups or settings.at.root / "backups").expanduser().absolute()


async def make_backup(settings: Settings, db: Database, now: datetime) -> Backup:
    """Make a backup, prove that it can be read, and take away the oldest beyond those kept.

    Raises:
        BackupFailed: nothing new is there; the older ones are untouched.
    """
    root = backups_directory(settings)
    name = now.strftime(_NAME)
    partial = root / f"{_PARTIAL}{name}"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for leftover in list(root.glob(f"{_PARTIAL}*")):
            shutil.rmtree(leftover)
        partial.mkdir(mode=0o700)
        manifest = await _fill(settings, db, partial, now)
        write_private(partial / MANIFEST, json.dumps(manifest, indent=2))
        partial.rename(root / name)
    except OSError as error:
        raise BackupFailed(
            f"The backup can not be written to {root}: {error.strerror or error}.",
            hint="Make room, or set HAN_SOLO_BACKUPS to another directory.",
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    backup = Backup(root / name, manifest)
    await verify_backup(backup)
    for old in list_backups(settings)[settings.backups_keep :]:
        shutil.rmtree(old.path)
    return backup


async def _fill(settings: Settings, db: Database, directory: Path, now: datetime) -> dict[str, Any]:
    where = Connections(settings)
    own = where.database_direct_url or where.database_url
    await dump_database(own, directory / "han_solo.dump")
    not_included: dict[str, str] = {}
    letta = _letta_url(where)
    if letta is None:
        not_included["letta"] = "Letta's database is not ours: back it up where it runs."
    else:
        await dump_database(letta, directory / "letta.dump")
    rows = await export_store(db, directory / "export")
    files = await asyncio.to_thread(_describe_files, directory)
    return {
        "made_at": now.isoformat(),
        "rows": rows,
        "files": files,
        "not_included": not_included,
    }


def _describe_files(directory: Path) -> dict[str, dict[str, object]]:
    return {
        str(path.relative_to(directory)): {"bytes": path.stat().st_size, "sha256": _digest(path)}
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def _letta_url(where: Connections) -> str | None:
    if not where.letta_is_embedded:
        return None
    port = where.home.load_endpoints().postgres_port
    password = where.home.read_secret(SECRET_OF_ROLE[LETTA_ROLE])
    if not port or not password:
        return None
    return postgres_url(port, LETTA_ROLE, password, LETTA_DATABASE)


def list_backups(settings: Settings) -> list[Backup]:
    """Return the finished backups, the newest first."""
    root = backups_directory(settings)
    found = []
    for path in sorted(root.glob("2*Z"), reverse=True) if root.is_dir() else ():
        try:
            manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        found.append(Backup(path, manifest))
    return found


def find_backup(settings: Settings, name: str | None = None) -> Backup:
    """Return the backup of that name; the newest without one.

    Raises:
        NotFound: there is none.
    """
    found = list_backups(settings)
    backup = next((each for each in found if name in {None, each.name}), None)
    if backup is None:
        raise NotFound(
            f"There is no backup {name!r}." if name else "There is no backup yet.",
            hint=f"They lie in {backups_directory(settings)}; `han-solo backups list` lists them.",
        )
    return backup


async def verify_backup(backup: Backup) -> tuple[str, ...]:
    """Prove that every file is as it was written and every dump can be read; returns the tables.

    Raises:
        BackupFailed: names the first file that is damaged.
    """
    for name, told in backup.manifest["files"].items():
        path = backup.path / name
        if not path.is_file() or await asyncio.to_thread(_digest, path) != told["sha256"]:
            raise BackupFailed(
                f"The file {path} is missing or damaged.",
                hint="Use another backup, and look at the disk.",
            )
    return await list_tables(backup.path / "han_solo.dump")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
