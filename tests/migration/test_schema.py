"""``schema.sql`` is the whole truth: the migrations reach exactly it."""

import re
import subprocess
from pathlib import Path

import asyncpg

from han_solo.embedded.postgres_binaries import find_programs
from han_solo.store import ledger
from han_solo.store.database import Database
from han_solo.store.migrate import apply_migrations

SCHEMA = Path(ledger.__file__).with_name("schema.sql")
DUMP = find_programs(None, copies=()) / "pg_dump"


def dump(url):
    """Return the schema as pg_dump writes it, without what differs from one dump to the next."""
    done = subprocess.run(
        [DUMP, "--schema-only", f"--dbname={url}"], check=True, capture_output=True, text=True
    )
    lines = (line for line in done.stdout.splitlines() if line and not line.startswith("--"))
    return [line for line in lines if not re.match(r"\\(un)?restrict ", line)]


async def test_migrations_reach_exactly_the_schema(database_url, postgres_server):
    name = f"{database_url.rpartition('/')[2][:40]}_whole"
    whole_url = await postgres_server.create_database(name)
    try:
        connection = await asyncpg.connect(whole_url)
        await connection.execute(SCHEMA.read_text(encoding="utf-8"))
        await connection.close()
        db = await Database.connect(database_url)
        await apply_migrations(db)
        await db.close()
        assert dump(database_url) == dump(whole_url)
    finally:
        await postgres_server.drop_database(name)


async def test_the_comparison_sees_a_difference(database_url):
    db = await Database.connect(database_url)
    await apply_migrations(db)
    before = dump(database_url)
    async with db.connection() as connection:
        await connection.execute("ALTER TABLE memory.notecards DROP CONSTRAINT notecards_pkey")
    await db.close()
    assert dump(database_url) != before
