"""Roles, databases and extensions of the embedded Postgres; run at each start, idempotent.

Identifiers and role passwords can not be parameters in SQL, so Postgres itself quotes them:
``format(%I, %L)`` with bound arguments yields the statement that is then executed.
"""

from __future__ import annotations

from typing import Final

import asyncpg

EXTENSIONS: Final[dict[str, tuple[str, ...]]] = {
    "letta": ("vector",),
    "han_solo": ("vector", "pg_trgm", "unaccent"),
}
"""By database, each owned by the role of its name. The superuser makes them: owners may not."""


async def ensure_role(admin: asyncpg.Connection, name: str, password: str) -> None:
    """Make a role that may log in and nothing else, and give it the password."""
    known = await admin.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", name)
    verb = "ALTER" if known else "CREATE"
    await _execute(
        admin,
        f"{verb} ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD %L",
        name,
        password,
    )


async def ensure_database(admin: asyncpg.Connection, name: str, owner: str) -> None:
    """Make a database that only its owner (and the superuser) can connect to."""
    if not await admin.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name):
        await _execute(admin, "CREATE DATABASE %I OWNER %I TEMPLATE template0", name, owner)
    await _execute(admin, "REVOKE ALL ON DATABASE %I FROM PUBLIC", name)


async def ensure_extensions(database: asyncpg.Connection, names: tuple[str, ...]) -> None:
    for name in names:
        await _execute(database, "CREATE EXTENSION IF NOT EXISTS %I", name)


async def drop_database(admin: asyncpg.Connection, name: str) -> None:
    """Drop it, whoever is connected."""
    await _execute(admin, "DROP DATABASE IF EXISTS %I WITH (FORCE)", name)


async def _execute(connection: asyncpg.Connection, template: str, *values: str) -> None:
    statement = await connection.fetchval(
        "SELECT format($1, VARIADIC $2::text[])", template, values
    )
    await connection.execute(statement)
