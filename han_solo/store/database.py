"""The way to Postgres: a pool for everyday statements, and direct connections for what needs one.

Everything that touches the database goes through ``Database``. Two rules make it the same behind a
transaction pooler as without one: pooled connections carry no session state (no ``SET`` outside a
transaction, no session locks, no ``LISTEN``), and every table is named with its schema. What does
need a session (the migration lock, a leader's lock) takes a ``direct()`` connection.

A pool that lost its connections, as in a restart of Postgres, makes new ones when asked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import asyncpg

from .. import logs
from ..errors import SettingsError
from . import faults, transactions
from .urls import describe_url

if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record]
    _Pool = asyncpg.Pool[asyncpg.Record]
    _Proxy = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
else:  # asyncpg's classes are generic in their stubs only
    Connection = asyncpg.Connection
    _Pool = asyncpg.Pool

Pooler = Literal["none", "transaction"]

CONNECT_TIMEOUT_S: Final = 15.0
"""A managed Postgres that sleeps (scale to zero) takes some seconds to wake."""

CLOSE_TIMEOUT_S: Final = 5.0
"""How long `close` waits for connections in use before it cuts them."""

RELEASE_TIMEOUT_S: Final = 1.0
"""How long a connection given back may take to cancel what it was still doing; then it is cut."""

CACHED_STATEMENTS: Final = 100
"""asyncpg's own default; far above the number of our queries."""

_log = logs.get("store")


class Database:
    """A pool of connections to one database; made by ``connect``, ended by ``close``."""

    def __init__(
        self, pool: _Pool, *, url: str, direct_url: str, pooler: Pooler, timeout_s: float
    ) -> None:
        self._pool = pool
        self._direct_url = direct_url
        self._timeout_s = timeout_s
        self.pooler: Final = pooler
        self.pool_size: Final = pool.get_max_size()
        self.where: Final = describe_url(url)
        """``host:port/database``, for messages."""

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        direct_url: str | None = None,
        pooler: Pooler = "none",
        pool_size: int = 10,
        timeout_s: float = 30.0,
    ) -> Database:
        """Connect, with one connection made at once so that a fault shows here.

        Args:
            url: the database, perhaps through a pooler.
            direct_url: the same database around the pooler.
            pooler: ``transaction`` when ``url`` leads through a pooler in transaction mode.
            pool_size: connections, at most.
            timeout_s: what one statement may take, and the wait for a free connection.

        Raises:
            SettingsError: a URL can not be used, or the direct one is missing.
            DatabaseRefused: wrong password, no such database, no rights.
            DatabaseUnavailable: no answer.
        """
        where = describe_url(url)
        if direct_url:
            describe_url(direct_url, "HAN_SOLO_DATABASE_DIRECT_URL")
        elif pooler == "transaction":
            raise SettingsError(
                "HAN_SOLO_DATABASE_POOLER=transaction needs HAN_SOLO_DATABASE_DIRECT_URL.",
                hint="Set it to the database's own address, around the pooler: migrations and "
                "locks need a session.",
            )
        try:
            pool = await asyncpg.create_pool(
                url,
                min_size=1,
                max_size=pool_size,
                init=_prepare_pooled if pooler == "transaction" else _prepare,
                reset=_keep,
                timeout=min(CONNECT_TIMEOUT_S, timeout_s),
                command_timeout=timeout_s,
                statement_cache_size=0 if pooler == "transaction" else CACHED_STATEMENTS,
            )
        except faults.FOREIGN as error:
            fault = faults.connect_fault(error, where, min(CONNECT_TIMEOUT_S, timeout_s))
            if fault is None:
                raise
            raise fault from error
        return cls(pool, url=url, direct_url=direct_url or url, pooler=pooler, timeout_s=timeout_s)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend a connection of the pool; each statement commits by itself.

        Through a transaction pooler the whole body is one transaction, since asyncpg prepares a
        statement and runs it in two exchanges, which the pooler may send to two servers.

        Raises:
            DatabaseUnavailable: no connection, or the connection was lost, or a statement was
                stopped by its deadline.
        """
        async with self._lend() as connection:
            if self.pooler == "transaction":
                async with transactions.begin(connection, self.where):
                    yield connection
            else:
                yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Lend a connection inside a transaction, committed when the body ends without an error.

        Raises:
            DatabaseUnavailable: as ``connection``; when it was lost at the commit the error says
                that the outcome is not known, and is not retryable.
        """
        async with self._lend() as connection, transactions.begin(connection, self.where):
            yield connection

    @asynccontextmanager
    async def direct(
        self, *, application_name: str = "han-solo", statement_timeout_s: float | None = None
    ) -> AsyncIterator[Connection]:
        """Open a connection of one's own around the pooler, closed when the body ends.

        Args:
            application_name: how it is shown in ``pg_stat_activity``; at most 63 bytes.
            statement_timeout_s: what one statement may take, for those that look at everything;
                the database's own otherwise.
        """
        timeout_s = min(CONNECT_TIMEOUT_S, self._timeout_s)
        where = describe_url(self._direct_url)
        try:
            connection: Connection = await asyncpg.connect(
                self._direct_url,
                timeout=timeout_s,
                command_timeout=statement_timeout_s or self._timeout_s,
                server_settings={"application_name": application_name},
            )
        except faults.FOREIGN as error:
            fault = faults.connect_fault(error, where, timeout_s)
            if fault is None:
                raise
            raise fault from error
        try:
            await _prepare(connection)
            yield connection
        except faults.FOREIGN as error:
            self._raise_fault(error, connection)
            raise
        finally:
            await _close(connection)

    async def ping(self) -> None:
        """Ask the server for a sign of life.

        Raises:
            DatabaseUnavailable: there is none.
        """
        async with self.connection() as connection:
            await connection.fetchval("SELECT 1")

    async def close(self) -> None:
        """Close the pool; connections in use get a short while, then they are cut."""
        try:
            await asyncio.wait_for(self._pool.close(), CLOSE_TIMEOUT_S)
        except faults.FOREIGN as error:
            self._pool.terminate()
            _log.debug("database.close_failed", error=type(error).__name__)

    @asynccontextmanager
    async def _lend(self) -> AsyncIterator[Connection]:
        connection = await self._acquire()
        try:
            yield connection
        except faults.FOREIGN as error:
            self._raise_fault(error, connection)
            raise
        finally:
            await self._release(connection)

    async def _acquire(self) -> Connection:
        try:
            return cast("Connection", await self._pool.acquire(timeout=self._timeout_s))
        except faults.FOREIGN as error:
            busy = self._pool.get_size() >= self._pool.get_max_size()
            if isinstance(error, TimeoutError) and busy and not self._pool.get_idle_size():
                raise faults.pool_exhausted(
                    self.where, self._pool.get_max_size(), self._timeout_s
                ) from error
            fault = faults.connect_fault(error, self.where, self._timeout_s)
            if fault is None or self._pool.is_closing():
                raise
            raise fault from error

    async def _release(self, connection: Connection) -> None:
        """Give it back. What the body did is done: a connection that breaks here is only noted.

        A cancelled statement is cancelled on the server too, and a server that hangs answers no
        cancel: asyncpg shields that wait from the caller's deadline and waits as long as a
        statement may take. With a timeout of its own it cuts the connection instead.
        """
        try:
            await self._pool.release(cast("_Proxy", connection), timeout=RELEASE_TIMEOUT_S)
        except faults.FOREIGN as error:
            _log.debug("database.release_failed", error=type(error).__name__)

    def _raise_fault(self, error: Exception, connection: Connection) -> None:
        if faults.is_foreign(error):
            return
        fault = faults.statement_fault(
            error, self.where, self._timeout_s, closed=transactions.is_closed(connection)
        )
        if fault is not None:
            raise fault from error


async def _prepare(connection: Connection) -> None:
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", encoder=_encode_json, decoder=json.loads
    )


async def _prepare_pooled(connection: Connection) -> None:
    """Prepare inside a transaction, so that a pooler keeps to one server; see ``connection``."""
    async with transactions.begin(connection, "the database"):
        await _prepare(connection)


async def _keep(_connection: Connection) -> None:
    """Skip asyncpg's ``RESET ALL`` and its round trip: there is no session state to reset."""


def _encode_json(value: Mapping[str, Any] | list[Any] | str | float | bool | None) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


async def _close(connection: Connection) -> None:
    try:
        await connection.close(timeout=CLOSE_TIMEOUT_S)
    except faults.FOREIGN as error:
        connection.terminate()
        _log.debug("database.close_failed", error=type(error).__name__)
