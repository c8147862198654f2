"""What the tests of the store, the tokens and the notecards share."""

import asyncio
import contextlib
from datetime import timedelta

import asyncpg

from han_solo.store.database import Database
from han_solo.store.migrate import apply_migrations


@contextlib.asynccontextmanager
async def migrated(url, **options):
    """Connect to a database and bring it to this release's schema."""
    db = await Database.connect(url, **options)
    try:
        await apply_migrations(db)
        yield db
    finally:
        await db.close()


@contextlib.asynccontextmanager
async def superuser(postgres_server, url):
    """Open a connection as the superuser to the database of that URL."""
    name = url.rpartition("/")[2]
    connection = await asyncpg.connect(postgres_server.url(name, "postgres"))
    try:
        yield connection
    finally:
        await connection.close()


class StoppedClock:
    """A clock that moves only when told."""

    def __init__(self, moment):
        self.moment = moment

    def now(self):
        return self.moment

    async def sleep(self, delay_s):
        self.moment += timedelta(seconds=delay_s)
        await asyncio.sleep(0)
