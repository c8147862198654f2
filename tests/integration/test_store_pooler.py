"""The store behind a pooler in transaction mode."""

import asyncio
import contextlib
import time
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from han_solo.daemon.leadership import Leadership
from han_solo.errors import DatabaseUnavailable, SettingsError
from han_solo.memory.notecards import Notecards
from han_solo.principals import MEMORY_READ, MEMORY_WRITE, Principal
from han_solo.store.database import Database
from han_solo.store.migrate import apply_migrations
from han_solo.tokens.service import Tokens

from .bridge_fixtures import Cable
from .store_fixtures import migrated
from .transaction_pooler import TransactionPooler

pytestmark = pytest.mark.postgres

PID = "SELECT pg_backend_pid()"
REN = Principal("ren", "agent", frozenset({MEMORY_READ, MEMORY_WRITE}))


@pytest_asyncio.fixture
async def pooled_url(database_url):
    port = urlsplit(database_url).port
    async with TransactionPooler(port) as pooler:
        yield database_url.replace(f":{port}/", f":{pooler.port}/")


@pytest_asyncio.fixture
async def db(pooled_url, database_url):
    async with migrated(
        pooled_url, direct_url=database_url, pooler="transaction", pool_size=4
    ) as db:
        await asyncio.gather(*(hold(db) for _ in range(4)))  # so that there are servers to switch
        yield db


async def hold(db):
    async with db.transaction() as connection:
        await connection.fetchval("SELECT pg_sleep(0.05)")


async def test_a_transaction_pooler_needs_a_direct_url(pooled_url):
    with pytest.raises(SettingsError, match="HAN_SOLO_DATABASE_DIRECT_URL"):
        await Database.connect(pooled_url, pooler="transaction")


async def test_the_pooler_really_gives_each_transaction_another_server(db):
    seen = set()
    for _ in range(6):
        async with db.connection() as connection:
            seen.add(await connection.fetchval(PID))
    assert len(seen) > 1


async def test_a_body_keeps_its_server(db):
    for _ in range(6):
        async with db.connection() as connection:
            assert len({await connection.fetchval(PID) for _ in range(5)}) == 1


async def test_statements_with_parameters_run_on_any_server(db):
    for number in range(20):
        async with db.connection() as connection:
            assert await connection.fetchval("SELECT $1::int + 1", number) == number + 1


async def test_jsonb_and_times_come_back_as_they_do_without_a_pooler(db):
    moment = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    for _ in range(6):
        async with db.connection() as connection:
            row = await connection.fetchrow(
                "SELECT $1::jsonb AS value, $2::timestamptz AS at", {"a": ["é"]}, moment
            )
            assert (row["value"], row["at"]) == ({"a": ["é"]}, moment)


async def test_an_error_undoes_the_body_and_frees_the_server(db):
    async def fail():
        async with db.connection() as connection:
            await connection.execute(
                "INSERT INTO han_solo.config (key, value, updated_by) VALUES ('x', '1', 'test')"
            )
            raise LookupError

    for _ in range(6):
        with pytest.raises(LookupError):
            await fail()
    async with db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM han_solo.config") == 0


async def test_a_statement_that_hangs_is_given_up_and_the_next_one_works(pooled_url, database_url):
    db = await Database.connect(
        pooled_url, direct_url=database_url, pooler="transaction", pool_size=1, timeout_s=0.5
    )
    try:
        # This pooler does not pass the cancelling on, so asyncpg has to cut the connection.
        with pytest.raises(DatabaseUnavailable, match=r"stopped after 0\.5 s"):
            async with db.connection() as connection:
                await connection.execute("SELECT pg_sleep(5)")
        await db.ping()
    finally:
        await db.close()


@pytest.mark.parametrize("is_new", [False, True], ids=["held before", "made meanwhile"])
async def test_a_database_that_hangs_is_given_up_at_the_callers_deadline(
    pooled_url, database_url, is_new
):
    async with Cable(pooled_url) as cable:
        db = await Database.connect(
            cable.url, direct_url=database_url, pooler="transaction", pool_size=2, timeout_s=30
        )
        try:
            async with contextlib.AsyncExitStack() as busy:
                if is_new:  # the only connection is taken, so the pool makes another
                    await busy.enter_async_context(db.connection())
                cable.hold()
                started = time.monotonic()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await db.ping()
                assert time.monotonic() - started < 10
                cable.let_go()
            await db.ping()
        finally:
            await db.close()


async def test_direct_goes_around_the_pooler(db):
    async with db.direct() as connection:
        pids = {await connection.fetchval(PID) for _ in range(5)}
        assert await connection.fetchval("SELECT pg_try_advisory_lock(7)")
        assert await connection.fetchval("SELECT pg_advisory_unlock(7)")
    assert len(pids) == 1


async def test_migrating_again_through_it_changes_nothing(db):
    assert await apply_migrations(db) == ()


async def test_tokens_and_notecards_work_through_it(db):
    tokens, notecards = Tokens(db), Notecards(db)
    issued = await tokens.create("ren", "agent")
    cards = await asyncio.gather(
        *(notecards.create(REN, text=f"note {n}", creator="scott") for n in range(20))
    )
    for card in cards:
        assert (await tokens.verify(issued.token)).name == "ren"
        assert (await notecards.complete(REN, card.id)).changed
    page = await notecards.list(status="completed", limit=100)
    assert {card.id for card in page.notecards} == {card.id for card in cards}


async def test_the_lead_is_held_around_the_pooler(db, database_url):
    async with Leadership(db, "ren").try_lead() as lead:
        assert lead is not None
        for _ in range(6):  # each on another server of the pooler; none of them has the lock
            await db.ping()
        async with Leadership(db, "ren").try_lead() as second:
            assert second is None
        async with migrated(database_url) as direct, direct.connection() as connection:
            (holder,) = await connection.fetch(
                "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)"
                " WHERE locktype = 'advisory' AND datname = current_database()"
            )
        assert holder["application_name"] == "han-solo leader"
        assert lead.is_held
