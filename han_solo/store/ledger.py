"""The migrations of this release, and how they compare with the ledger of a database. Pure.

``Migration`` is a file of ``migrations/NNNN_name.sql``; ``Applied`` a row of
``han_solo.migrations``. A database may be behind (then the rest is pending) but never ahead of this
release, and what was applied must still be what the release holds.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from ..errors import MigrationChanged, SchemaNewer, StoreError

MIGRATIONS: Final = Path(__file__).resolve().parent / "migrations"

_FILE: Final = re.compile(r"(?P<version>[0-9]{4})_(?P<name>[a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration of this release; ``title`` is its file's name without ``.sql``."""

    version: int
    title: str
    sql: str
    checksum: str


@dataclass(frozen=True, slots=True)
class Applied:
    """A row of the ledger; ``name`` is the migration's title."""

    version: int
    name: str
    checksum: str
    applied_at: datetime
    applied_by: str


def release() -> str:
    """Return the version of this han-solo."""
    try:
        return version("han-solo")
    except PackageNotFoundError:  # a checkout on the path, never installed
        return "unreleased"


def load_migrations(folder: Path = MIGRATIONS) -> tuple[Migration, ...]:
    """Read the migrations, in order.

    Raises:
        StoreError: a file is misnamed, or the numbers do not run from 1 without a gap.
    """
    found = []
    for path in sorted(folder.glob("*.sql")):
        match = _FILE.fullmatch(path.name)
        if not match:
            raise StoreError(
                f"{path} is not named as a migration.", hint="Name it NNNN_what_it_does.sql."
            )
        content = path.read_bytes()
        found.append(
            Migration(
                version=int(match["version"]),
                title=path.stem,
                sql=content.decode("utf-8"),
                # A checkout on Windows or with autocrlf must not look like an edit.
                checksum=hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest(),
            )
        )
    numbers = [migration.version for migration in found]
    if numbers != list(range(1, len(numbers) + 1)):
        raise StoreError(
            f"The migrations in {folder} are numbered {numbers}, not 1 to {len(numbers)}.",
            hint="Install han-solo anew; two branches that add the same number must be renumbered.",
        )
    return tuple(found)


def pending(
    known: Sequence[Migration], applied: Sequence[Applied], where: str
) -> tuple[Migration, ...]:
    """Return the migrations that are still to be applied.

    Args:
        known: those of this release.
        applied: the ledger, by version.
        where: ``host:port/database``, for the errors.

    Raises:
        SchemaNewer: the ledger holds versions that this release does not know.
        MigrationChanged: one that was applied differs from this release's, or the ledger has a gap.
    """
    by_version = {migration.version: migration for migration in known}
    last = applied[-1] if applied else None
    if last and last.version not in by_version:
        raise SchemaNewer(
            f"The database at {where} is at version {last.version} ({last.name}), written by "
            f"han-solo {last.applied_by}; this is han-solo {release()}, which knows versions up to "
            f"{len(known)}.",
            hint=f"Start han-solo {last.applied_by} or newer; an older one would not understand "
            "what is stored. Nothing was changed.",
        )
    for position, row in enumerate(applied, start=1):
        if row.version != position:
            raise MigrationChanged(
                f"The ledger han_solo.migrations at {where} has no version {position}, but has "
                f"version {row.version}.",
                hint="Restore the row from a backup: without it nobody knows what was applied. "
                "Nothing was changed.",
            )
        migration = by_version[row.version]
        if (migration.title, migration.checksum) != (row.name, row.checksum):
            raise MigrationChanged(
                f"Migration {migration.title} of this release (SHA-256 {migration.checksum[:12]}) "
                f"is not the {row.name} ({row.checksum[:12]}) that han-solo {row.applied_by} "
                f"applied to {where}.",
                hint="Start the release that applied it, or restore the file: a migration is never "
                "edited once it was applied. Nothing was changed.",
            )
    return tuple(known[len(applied) :])
