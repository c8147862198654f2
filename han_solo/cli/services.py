"""What commands work on: the database, connected, at this release's schema, closed at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..connections import Connections
from ..settings import Settings
from ..store.database import Database
from ..store.migrate import apply_migrations


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """Connect to the database that is set, or else the embedded one, and migrate it if need be.

    Raises:
        SettingsError: there is neither.
        DatabaseUnavailable: it does not answer, or refuses us.
        SchemaNewer: a newer han-solo has migrated it.
        MigrationChanged: what was applied is not what this release holds.
    """
    where = Connections(settings)
    db = await Database.connect(
        where.database_url,
        direct_url=where.database_direct_url,
        pooler=settings.database_pooler,
        pool_size=settings.database_pool_size,
        timeout_s=settings.database_timeout_s,
    )
    try:
        await apply_migrations(db)
        yield db
    finally:
        await db.close()
