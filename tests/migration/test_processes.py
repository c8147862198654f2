"""Migrating from several processes at once, and one that is killed in the middle."""

import asyncio
import json
import sys

import pytest

from han_solo.errors import StoreError
from han_solo.store import migrate
from han_solo.store.database import Database
from han_solo.store.ledger import Migration, load_migrations
from han_solo.store.migrate import apply_migrations

KNOWN = load_migrations()
NEXT = len(KNOWN) + 1

CHILD = f"""
import asyncio, json, sys
from han_solo import logs
from han_solo.store.database import Database
from han_solo.store.ledger import Migration, load_migrations
from han_solo.store.migrate import apply_migrations

async def main(url, sql):
    db = await Database.connect(url)
    print("ready", flush=True)
    sys.stdin.readline()
    known = load_migrations()
    last = Migration({NEXT}, "last", sql, "a" * 64)
    print(json.dumps(await apply_migrations(db, migrations=[*known, last])), flush=True)
    await db.close()

logs.configure()  # to stderr
asyncio.run(main(*sys.argv[1:]))
"""


async def spawn(url, sql):
    """Start a process that waits, connected, for the word to migrate."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CHILD,
        url,
        sql,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert await process.stdout.readline() == b"ready\n"
    return process


def release(process):
    process.stdin.write(b"\n")


async def until(predicate, timeout_s=60):
    async with asyncio.timeout(timeout_s):
        while not await predicate():
            await asyncio.sleep(0.05)


@pytest.fixture
async def db(database_url):
    db = await Database.connect(database_url)
    yield db
    await db.close()


async def test_of_several_processes_at_once_one_migrates_and_all_succeed(database_url, db):
    slow = "CREATE TABLE memory.last (n int); SELECT pg_sleep(0.5);"
    processes = await asyncio.gather(*(spawn(database_url, slow) for _ in range(3)))
    for process in processes:
        release(process)
    outputs = [await process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    applied = sorted((json.loads(out) for out, _ in outputs), key=len)
    assert applied == [[], [], [*(m.title for m in KNOWN), "last"]]
    async with db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM han_solo.migrations") == NEXT


async def test_a_process_killed_in_the_middle_leaves_nothing_half_and_stops_no_one(
    database_url, db
):
    process = await spawn(
        database_url, "CREATE TABLE memory.half (n int); SELECT pg_sleep(300) AS half;"
    )
    release(process)

    async def sleeping():
        async with db.connection() as connection:
            return await connection.fetchval(
                "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE state = 'active' "
                "AND datname = current_database() AND wait_event = 'PgSleep')"
            )

    await until(sleeping)
    process.kill()
    await process.wait()

    quick = Migration(NEXT, "quick", "CREATE TABLE memory.quick (n int);", "b" * 64)
    assert await apply_migrations(db, migrations=[*KNOWN, quick], lock_wait_s=60) == ("quick",)
    async with db.connection() as connection:
        assert await connection.fetchval("SELECT to_regclass('memory.half')") is None
        assert await connection.fetchval("SELECT to_regclass('memory.quick')") is not None


async def test_the_wait_for_another_process_is_bounded_and_names_it(db):
    async with db.direct(application_name="someone else") as connection:
        assert await connection.fetchval("SELECT pg_try_advisory_lock($1)", migrate.LOCK_KEY)
        pid = await connection.fetchval("SELECT pg_backend_pid()")
        with pytest.raises(StoreError, match="migrating") as caught:
            await apply_migrations(db, lock_wait_s=0.3)
    assert f"someone else (Postgres pid {pid}, role han_solo since " in caught.value.message
    assert "pg_terminate_backend" in caught.value.hint
    assert await apply_migrations(db) == tuple(m.title for m in KNOWN)


async def test_nothing_to_do_needs_no_lock(db):
    await apply_migrations(db)
    async with db.direct() as connection:
        assert await connection.fetchval("SELECT pg_try_advisory_lock($1)", migrate.LOCK_KEY)
        assert await apply_migrations(db, lock_wait_s=0) == ()
