"""Migrations on a real Postgres: whole or not at all, and only where they fit."""

from dataclasses import replace

import asyncpg
import pytest

from han_solo.errors import DatabaseRefused, MigrationChanged, SchemaNewer, StoreError
from han_solo.store import migrate
from han_solo.store.database import Database
from han_solo.store.ledger import Migration, load_migrations
from han_solo.store.migrate import apply_migrations, check_schema

KNOWN = load_migrations()
TITLES = tuple(m.title for m in KNOWN)
NEXT = len(KNOWN) + 1


@pytest.fixture
async def db(database_url):
    db = await Database.connect(database_url)
    yield db
    await db.close()


@pytest.fixture
async def admin(postgres_server, database_url):
    """Yield the superuser's connection to the test's database."""
    connection = await asyncpg.connect(postgres_server.url(name_of(database_url), "postgres"))
    yield connection
    await connection.close()


def name_of(url):
    return url.rpartition("/")[2]


def later(sql, title="later"):
    """Return a migration that comes after those of the release."""
    return Migration(NEXT, f"{NEXT:04}_{title}", sql, "a" * 64)


async def schemas(admin):
    rows = await admin.fetch(
        "SELECT nspname FROM pg_namespace WHERE nspname IN ('han_solo', 'memory')"
    )
    return {row["nspname"] for row in rows}


async def test_an_empty_database_gets_all_migrations_in_order(db):
    assert await check_schema(db) == TITLES
    assert await apply_migrations(db) == TITLES
    assert await check_schema(db) == ()


async def test_applying_again_changes_nothing(db):
    await apply_migrations(db)
    assert await apply_migrations(db) == ()


async def test_the_ledger_says_what_was_applied_and_by_which_release(db):
    await apply_migrations(db)
    async with db.connection() as connection:
        rows = await connection.fetch(
            "SELECT version, name, checksum, applied_by FROM han_solo.migrations ORDER BY version"
        )
    assert [(r["version"], r["name"], r["checksum"]) for r in rows] == [
        (m.version, m.title, m.checksum) for m in KNOWN
    ]
    assert {r["applied_by"] for r in rows} == {migrate.release()}


async def test_a_migration_that_fails_leaves_nothing_of_itself(db):
    await apply_migrations(db)
    bad = later("CREATE TABLE memory.half (n int); SELECT * FROM memory.nowhere;")
    with pytest.raises(StoreError, match=rf"{bad.title} does not fit .*nowhere.*nothing was"):
        await apply_migrations(db, migrations=[*KNOWN, bad])
    async with db.connection() as connection:
        assert await connection.fetchval("SELECT to_regclass('memory.half')") is None
    assert await check_schema(db) == ()


async def test_tables_of_someone_else_are_not_touched(db, admin):
    await admin.execute(
        "CREATE SCHEMA memory AUTHORIZATION han_solo CREATE TABLE notecards (theirs int)"
    )
    with pytest.raises(StoreError, match="does not fit") as caught:
        await apply_migrations(db)
    assert "a database of its own" in caught.value.hint
    assert await schemas(admin) == {"memory"}


async def test_a_database_of_a_newer_release_is_refused_and_left_alone(db):
    await apply_migrations(db, migrations=[*KNOWN, later("SELECT 1;")])
    for refuse in (apply_migrations, check_schema):
        with pytest.raises(SchemaNewer, match=f"is at version {NEXT} "):
            await refuse(db)


async def test_a_migration_edited_after_it_was_applied_is_refused(db):
    await apply_migrations(db)
    edited = [replace(KNOWN[0], checksum="f" * 64), *KNOWN[1:]]
    with pytest.raises(MigrationChanged, match=KNOWN[0].title):
        await apply_migrations(db, migrations=edited)


async def test_a_missing_extension_that_the_role_may_not_make_is_told(db, admin):
    await admin.execute("DROP EXTENSION vector")
    with pytest.raises(DatabaseRefused, match="may not make the extension vector") as caught:
        await apply_migrations(db)
    assert "CREATE EXTENSION vector;" in caught.value.hint
    assert await schemas(admin) == set()


async def test_a_missing_extension_is_made_where_that_is_allowed(
    admin, database_url, postgres_server
):
    await admin.execute("DROP EXTENSION vector")
    db = await Database.connect(postgres_server.url(name_of(database_url), "postgres"))
    try:
        assert await apply_migrations(db) == TITLES
    finally:
        await db.close()
    assert await admin.fetchval("SELECT true FROM pg_extension WHERE extname = 'vector'")


async def test_a_server_without_pgvector_is_told(db, monkeypatch):
    async def fetch_server(_connection):
        return {"encoding": "UTF8", "role": "me", "has_vector": False, "vector_available": False}

    monkeypatch.setattr(migrate._QUERIES, "fetch_server", fetch_server)
    with pytest.raises(DatabaseRefused, match="does not have the extension vector") as caught:
        await apply_migrations(db)
    assert "pgvector" in caught.value.hint


async def test_an_encoding_that_loses_text_is_refused(postgres_server, admin, database_url):
    name = f"{name_of(database_url)[:40]}_latin1"
    await admin.execute(
        f"CREATE DATABASE {name} OWNER han_solo ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' "
        "TEMPLATE template0"
    )
    try:
        db = await Database.connect(postgres_server.url(name, "han_solo"))
        try:
            with pytest.raises(DatabaseRefused, match="encoded in LATIN1"):
                await apply_migrations(db)
        finally:
            await db.close()
    finally:
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def stranger(admin, database_url, postgres_server):
    """Yield a connection of a role that may connect and nothing else."""
    await admin.execute(f"GRANT CONNECT ON DATABASE {name_of(database_url)} TO letta")
    db = await Database.connect(postgres_server.url(name_of(database_url), "letta"))
    yield db
    await db.close()


async def test_a_role_that_may_not_make_schemas_is_told(stranger, admin):
    with pytest.raises(DatabaseRefused, match="needs a right that the role has not") as caught:
        await apply_migrations(stranger)
    assert "GRANT CREATE ON DATABASE" in caught.value.hint
    assert await schemas(admin) == set()


async def test_a_role_that_may_not_read_the_ledger_is_told(db, stranger):
    await apply_migrations(db)
    with pytest.raises(DatabaseRefused, match="may not read what was migrated"):
        await check_schema(stranger)


async def test_a_table_in_use_is_waited_for_with_a_bound(db, monkeypatch):
    monkeypatch.setattr(migrate, "TABLE_LOCK_TIMEOUT", "200ms")
    await apply_migrations(db)
    alter = later("ALTER TABLE memory.notecards ADD COLUMN more int;")
    async with db.transaction() as connection:
        await connection.fetch("SELECT id FROM memory.notecards")
        with pytest.raises(StoreError, match="waited 200ms for a table"):
            await apply_migrations(db, migrations=[*KNOWN, alter])
    assert await apply_migrations(db, migrations=[*KNOWN, alter]) == (alter.title,)
