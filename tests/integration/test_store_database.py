"""The pool and the direct connections, against a real Postgres that is asked to misbehave."""

import asyncio
import tempfile
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio

from han_solo.embedded.ports import find_free_port
from han_solo.embedded.postgres import EmbeddedPostgres
from han_solo.errors import DatabaseRefused, DatabaseUnavailable
from han_solo.home import Home
from han_solo.store.database import Database

from .store_fixtures import superuser

pytestmark = pytest.mark.postgres

PID = "SELECT pg_backend_pid()"


@pytest_asyncio.fixture
async def db(database_url):
    db = await Database.connect(database_url, pool_size=2, timeout_s=10)
    yield db
    await db.close()


async def cut(postgres_server, url, pid):
    """End a session from outside, and wait until it has ended."""
    async with superuser(postgres_server, url) as admin:
        await admin.execute("SELECT pg_terminate_backend($1, 5000)", pid)


async def test_jsonb_is_read_as_what_was_written(db):
    value = {"a": [1, 2.5, None, True, "é\U0001f600 \ud7ff"], "b": {"c": "'\"\\\n"}}
    async with db.connection() as connection:
        assert await connection.fetchval("SELECT $1::jsonb", value) == value
    async with db.direct() as connection:
        assert await connection.fetchval("SELECT $1::jsonb", value) == value


async def test_what_json_does_not_have_is_refused(db):
    async with db.connection() as connection:
        with pytest.raises((ValueError, asyncpg.DataError)):
            await connection.fetchval("SELECT $1::jsonb", {"a": float("nan")})


async def test_times_are_aware_utc_whatever_the_server_thinks(db, database_url, postgres_server):
    name = database_url.rpartition("/")[2]
    async with superuser(postgres_server, database_url) as admin:
        await admin.execute(f"ALTER DATABASE {name} SET timezone = 'Asia/Tokyo'")
    moment = datetime(2026, 5, 1, 3, tzinfo=timezone(timedelta(hours=5)))
    async with db.direct() as connection:
        assert await connection.fetchval("SHOW timezone") == "Asia/Tokyo"
        found = await connection.fetchval("SELECT $1::timestamptz", moment)
    assert found == moment
    assert found.tzinfo is UTC


async def test_a_transaction_is_kept_whole_or_not_at_all(db):
    async with db.connection() as connection:
        await connection.execute("CREATE TABLE public.whole (n int)")
    async with db.transaction() as connection:
        await connection.execute("INSERT INTO public.whole VALUES (1)")

    async def fail():
        async with db.transaction() as connection:
            await connection.execute("INSERT INTO public.whole VALUES (2)")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    async with db.connection() as connection:
        assert [r["n"] for r in await connection.fetch("SELECT n FROM public.whole")] == [1]


async def test_a_cancelled_task_leaves_nothing_behind(db):
    async with db.connection() as connection:
        await connection.execute("CREATE TABLE public.left_over (n int)")
    inserted = asyncio.Event()

    async def write():
        async with db.transaction() as connection:
            await connection.execute("INSERT INTO public.left_over VALUES (1)")
            inserted.set()
            await connection.execute("SELECT pg_sleep(60)")

    task = asyncio.create_task(write())
    await inserted.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM public.left_over") == 0


@pytest.mark.parametrize("way", ["connection", "transaction", "direct"])
async def test_a_connection_that_is_cut_is_an_error_of_ours_and_heals(
    db, way, database_url, postgres_server
):
    async def work():
        async with getattr(db, way)() as connection:
            await cut(postgres_server, database_url, await connection.fetchval(PID))
            await connection.fetchval("SELECT 1")

    with pytest.raises(DatabaseUnavailable, match="was lost") as caught:
        await work()
    assert caught.value.retryable
    assert db.where in caught.value.message
    await db.ping()


async def test_connections_cut_while_idle_are_made_anew_unnoticed(
    db, database_url, postgres_server
):
    await asyncio.gather(*(db.ping() for _ in range(8)))
    async with superuser(postgres_server, database_url) as admin:
        await admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    await asyncio.sleep(0)  # let the loop see the closed sockets
    await asyncio.gather(*(db.ping() for _ in range(8)))


async def test_a_connection_cut_before_the_commit_says_that_the_outcome_is_unknown(
    db, database_url, postgres_server
):
    async def work():
        async with db.transaction() as connection:
            await cut(postgres_server, database_url, await connection.fetchval(PID))

    with pytest.raises(DatabaseUnavailable, match="not known whether") as caught:
        await work()
    assert not caught.value.retryable


async def test_a_statement_over_its_deadline_is_stopped_and_the_connection_is_good(database_url):
    db = await Database.connect(database_url, pool_size=1, timeout_s=0.5)
    try:
        with pytest.raises(DatabaseUnavailable, match=r"stopped after 0\.5 s"):
            async with db.connection() as connection:
                await connection.execute("SELECT pg_sleep(60)")
        await db.ping()
    finally:
        await db.close()


async def test_a_pool_that_is_all_in_use_says_so(database_url):
    db = await Database.connect(database_url, pool_size=1, timeout_s=0.3)
    try:
        async with db.connection():
            with pytest.raises(DatabaseUnavailable, match=r"All 1 connections .* were busy"):
                await db.ping()
        await db.ping()
    finally:
        await db.close()


async def test_a_misuse_is_not_mistaken_for_a_fault_of_the_server(db):
    with pytest.raises(asyncpg.UndefinedTableError):
        async with db.connection() as connection:
            await connection.execute("SELECT 1 FROM public.nowhere")
    async with db.connection() as connection:
        await connection.execute("CREATE TABLE public.once (n int PRIMARY KEY)")
    with pytest.raises(asyncpg.UniqueViolationError):
        async with db.transaction() as connection:
            await connection.execute("INSERT INTO public.once VALUES (1), (1)")
    await db.ping()


@pytest.mark.parametrize("way", ["connection", "transaction", "direct"])
@pytest.mark.parametrize("error", [TimeoutError, ConnectionResetError, FileNotFoundError])
async def test_what_fails_beside_the_database_is_not_taken_for_it(db, way, error):
    async def work():
        async with getattr(db, way)() as connection:
            await connection.fetchval("SELECT 1")
            raise error

    with pytest.raises(error):
        await work()
    await db.ping()


async def test_a_wrong_password_is_told_without_it(database_url):
    head, _, tail = database_url.rpartition("@")
    wrong = f"{head.rpartition(':')[0]}:hunter2@{tail}"
    with pytest.raises(DatabaseRefused, match="refuses the user or the password") as caught:
        await Database.connect(wrong)
    assert "hunter2" not in str(caught.value)
    assert tail in caught.value.message
    assert not caught.value.retryable


async def test_a_missing_database_is_told(database_url):
    with pytest.raises(DatabaseRefused, match=r"no database at .*/nowhere: "):
        await Database.connect(f"{database_url.rpartition('/')[0]}/nowhere")


async def test_nothing_listening_is_told():
    port = find_free_port()
    with pytest.raises(DatabaseUnavailable, match=f"Nothing listens at 127.0.0.1:{port}/memory"):
        await Database.connect(f"postgresql://me:x@127.0.0.1:{port}/memory")


async def test_a_server_that_does_not_answer_is_given_up():
    accepted = []

    async def ignore(_reader, writer):
        accepted.append(writer)

    silent = await asyncio.start_server(ignore, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    try:
        with pytest.raises(DatabaseUnavailable, match=r"did not answer within 0\.5 s"):
            await Database.connect(f"postgresql://me:x@127.0.0.1:{port}/memory", timeout_s=0.5)
    finally:
        silent.close()
        for writer in accepted:
            writer.close()


async def test_a_server_without_room_is_told(database_url, postgres_server):
    name = database_url.rpartition("/")[2]
    async with superuser(postgres_server, database_url) as admin:
        await admin.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 1")
    db = await Database.connect(database_url, pool_size=2)
    try:
        async with db.connection():
            with pytest.raises(DatabaseUnavailable, match="no connection left for us"):
                await db.ping()
        await db.ping()
    finally:
        await db.close()


async def test_close_ends_a_pool_in_use_after_a_while(database_url, monkeypatch):
    monkeypatch.setattr("han_solo.store.database.CLOSE_TIMEOUT_S", 0.2)
    db = await Database.connect(database_url)
    entered = asyncio.Event()

    async def hold():
        async with db.connection() as connection:
            entered.set()
            await connection.execute("SELECT pg_sleep(60)")

    task = asyncio.create_task(hold())
    await entered.wait()
    await db.close()
    with pytest.raises(DatabaseUnavailable):
        await task


async def test_a_pool_heals_after_a_restart_of_postgres():
    with tempfile.TemporaryDirectory(prefix="hs-restart-") as folder:
        root = Path(folder)
        root.chmod(0o711)  # the user that Postgres runs as has to pass through
        server = EmbeddedPostgres(Home(root / "home"), find_free_port(), cache=root / "cache")
        await server.start()
        try:
            db = await Database.connect(server.url("han_solo"), pool_size=4, timeout_s=20)
            await asyncio.gather(*(db.ping() for _ in range(8)))
            await server.stop()
            with pytest.raises(DatabaseUnavailable):
                await db.ping()
            await server.start()
            await asyncio.gather(*(db.ping() for _ in range(8)))
            await db.close()
        finally:
            await server.stop()
