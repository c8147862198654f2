"""Bring a database to the schema of this release: forward only, one process at a time.

Each migration runs in a transaction together with its row in the ledger, so a process that dies in
the middle leaves the database as it was. The lock is a session's, on a direct connection, and is
waited for by polling: a waiter that blocks inside ``pg_advisory_lock`` holds a snapshot, which
deadlocks a concurrent index build of the one that has it.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

import asyncpg

from .. import logs
from ..clock import Clock
from ..errors import DatabaseRefused, StoreError
from .database import Connection, Database
from .ledger import Applied, Migration, load_migrations, pending, release
from .queries import load_queries

LOCK_KEY: Final = 0x68616E5F736F6C6F
"""The bytes "han_solo": other applications that share the database take other numbers."""

LOCK_WAIT_S: Final = 300.0
"""A large migration of another process is let finish; longer is a fault someone should see."""

POLL_S: Final = (0.1, 0.4)
"""Between these, at random, so that many replicas that start at once do not ask in step."""

STATEMENT_TIMEOUT_S: Final = 3600.0
"""A migration may rewrite a table of years; the everyday deadline is not for it."""

TABLE_LOCK_TIMEOUT: Final = "60s"
"""Waiting for a table's lock makes everyone else wait behind us, so it is given up early."""

_log = logs.get("store")


class _Queries(Protocol):
    async def fetch_ledger_exists(self, conn: Connection) -> bool: ...
    def list_applied(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    async def insert_applied(
        self, conn: Connection, *, version: int, name: str, checksum: str, applied_by: str
    ) -> str: ...
    async def notice_dead_client(self, conn: Connection) -> str: ...
    async def try_lock(self, conn: Connection, *, key: int) -> bool: ...
    async def unlock(self, conn: Connection, *, key: int) -> bool: ...
    async def find_lock_holder(self, conn: Connection, *, key: int) -> asyncpg.Record | None: ...
    async def fetch_server(self, conn: Connection) -> asyncpg.Record: ...
    async def create_vector_extension(self, conn: Connection) -> str: ...


_QUERIES: Final = load_queries("migrations", _Queries)


async def check_schema(db: Database) -> tuple[str, ...]:
    """Return the titles of the migrations that are pending; changes nothing.

    Raises:
        SchemaNewer: the database was migrated by a newer han-solo.
        MigrationChanged: what was applied is not what this release holds.
    """
    async with db.connection() as connection:
        applied = await _load_applied(connection, db.where)
    return tuple(m.title for m in pending(load_migrations(), applied, db.where))


async def apply_migrations(
    db: Database,
    *,
    migrations: Sequence[Migration] | None = None,
    clock: Clock | None = None,
    lock_wait_s: float = LOCK_WAIT_S,
) -> tuple[str, ...]:
    """Apply what is pending and return its titles; safe to run from many processes at once.

    Args:
        db: the database.
        migrations: those of this release, unless others are given.
        clock: the seam for the waiting.
        lock_wait_s: how long another process that migrates is waited for.

    Raises:
        SchemaNewer: the database was migrated by a newer han-solo.
        MigrationChanged: what was applied is not what this release holds.
        StoreError: the lock was not to be had, the role lacks a right, or the extension vector is
            missing; the database is as the last whole migration left it.
    """
    known = load_migrations() if migrations is None else tuple(migrations)
    # Without anything to do no lock is taken: every start and every command comes by here.
    async with db.connection() as connection:
        if not pending(known, await _load_applied(connection, db.where), db.where):
            return ()
    name = f"han-solo migrating, pid {os.getpid()} on {socket.gethostname()}"
    async with (
        db.direct(application_name=name[:63]) as connection,
        _locked(connection, clock or Clock(), lock_wait_s, db.where),
    ):
        await _ensure_server_fits(connection, db.where)
        todo = pending(known, await _load_applied(connection, db.where), db.where)
        for migration in todo:
            await _apply(connection, migration, db.where)
    return tuple(migration.title for migration in todo)


async def _load_applied(connection: Connection, where: str) -> tuple[Applied, ...]:
    try:
        if not await _QUERIES.fetch_ledger_exists(connection):
            return ()
        return tuple([Applied(**dict(row)) async for row in _QUERIES.list_applied(connection)])
    except asyncpg.InsufficientPrivilegeError as error:
        raise DatabaseRefused(
            f"The role may not read what was migrated in {where}: {error}.",
            hint="Use the role that owns the schema han_solo in HAN_SOLO_DATABASE_URL.",
        ) from error


@asynccontextmanager
async def _locked(
    connection: Connection, clock: Clock, wait_s: float, where: str
) -> AsyncIterator[None]:
    # Without it the server runs a killed migrator's statement to its end, and keeps its lock till
    # then. Servers on systems that can not tell (not Linux, macOS or BSD) refuse the setting.
    with suppress(asyncpg.InvalidParameterValueError, asyncpg.UndefinedObjectError):
        await _QUERIES.notice_dead_client(connection)
    deadline = time.monotonic() + wait_s
    while not await _QUERIES.try_lock(connection, key=LOCK_KEY):
        if time.monotonic() >= deadline:
            holder = await _QUERIES.find_lock_holder(connection, key=LOCK_KEY)
            raise StoreError(
                f"Another process is migrating {where} for more than {wait_s:g} s: "
                f"{_describe(holder)}.",
                hint="Wait for it, or end it (SELECT pg_terminate_backend(PID)) if it hangs; "
                "what it did not finish is rolled back.",
            )
        await clock.sleep(random.uniform(*POLL_S))  # noqa: S311 - jitter, not a secret
    try:
        yield
    finally:
        if not connection.is_closed():  # a lost connection has given the lock back
            await _QUERIES.unlock(connection, key=LOCK_KEY)


def _describe(holder: asyncpg.Record | None) -> str:
    if holder is None:
        return "it has ended this moment"
    name = holder["application_name"] or "a session without a name"
    since = f" since {holder['backend_start']:%Y-%m-%d %H:%M:%S} UTC" if holder[3] else ""
    return f"{name} (Postgres pid {holder['pid']}, role {holder['usename']}{since})"


async def _ensure_server_fits(connection: Connection, where: str) -> None:
    """Refuse a database whose encoding loses text; make the extension where it is missing."""
    server = await _QUERIES.fetch_server(connection)
    if server["encoding"] != "UTF8":
        raise DatabaseRefused(
            f"The database at {where} is encoded in {server['encoding']}, which can not hold all "
            "text.",
            hint="Make one with ENCODING 'UTF8' TEMPLATE template0.",
        )
    if server["has_vector"]:
        return
    if not server["vector_available"]:
        raise DatabaseRefused(
            f"The Postgres of {where} does not have the extension vector (pgvector).",
            hint="Install pgvector on the server (https://github.com/pgvector/pgvector), or leave "
            "HAN_SOLO_DATABASE_URL out to use the embedded Postgres.",
        )
    try:
        await _QUERIES.create_vector_extension(connection)
    except asyncpg.InsufficientPrivilegeError as error:
        raise DatabaseRefused(
            f"The role {server['role']} may not make the extension vector in {where}.",
            hint="As a superuser, connected to that database, run: CREATE EXTENSION vector;",
        ) from error


async def _apply(connection: Connection, migration: Migration, where: str) -> None:
    started = time.monotonic()
    try:
        async with connection.transaction():
            await connection.execute(f"SET LOCAL lock_timeout = '{TABLE_LOCK_TIMEOUT}'")
            await connection.execute(migration.sql, timeout=STATEMENT_TIMEOUT_S)
            await _QUERIES.insert_applied(
                connection,
                version=migration.version,
                name=migration.title,
                checksum=migration.checksum,
                applied_by=release(),
            )
    except asyncpg.PostgresError as error:
        fault = _migration_fault(error, migration.title, where)
        if fault is None:
            raise
        raise fault from error
    _log.info(
        "store.migration_applied",
        migration=migration.title,
        duration_ms=round((time.monotonic() - started) * 1000),
    )


def _migration_fault(error: asyncpg.PostgresError, title: str, where: str) -> StoreError | None:
    """Return our error for a migration that can not run here, or None for a lost connection."""
    match error:
        case asyncpg.InsufficientPrivilegeError():
            return DatabaseRefused(
                f"Migration {title} needs a right that the role has not in {where}: {error}.",
                hint="Let the role own the database (ALTER DATABASE ... OWNER TO ...), or GRANT "
                "CREATE ON DATABASE to it.",
            )
        case asyncpg.LockNotAvailableError():
            return StoreError(
                f"Migration {title} waited {TABLE_LOCK_TIMEOUT} for a table in {where} that "
                "someone uses; nothing was changed.",
                hint="End the long transaction (pg_stat_activity shows it) and start again.",
            )
        case asyncpg.SyntaxOrAccessError() | asyncpg.IntegrityConstraintViolationError():
            return StoreError(
                f"Migration {title} does not fit the database at {where}: {error}; nothing was "
                "changed.",
                hint="Give han-solo a database of its own; if it had one, restore its schemas "
                "han_solo and memory from a backup.",
            )
    return None
