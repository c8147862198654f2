"""A transaction that says why it failed, and ends soon whatever the server does.

asyncpg's own context manager would raise from its ROLLBACK on a lost connection, and so hide why
the body failed; it does not tell a lost commit from a lost statement; and on a server that hangs
its ROLLBACK waits as long as a statement may take, after the caller's own deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import asyncpg
from asyncpg.transaction import Transaction

from .. import logs
from . import faults

if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record]
else:  # asyncpg's classes are generic in their stubs only
    Connection = asyncpg.Connection

ROLLBACK_TIMEOUT_S: Final = 1.0
"""How long a ROLLBACK may take; then the connection is cut, and the server rolls back by itself."""

_log = logs.get("store")


@asynccontextmanager
async def begin(connection: Connection, where: str) -> AsyncIterator[None]:
    """Run the body in a transaction.

    Args:
        connection: where; nothing else may use it meanwhile.
        where: the database, for the message.

    Raises:
        DatabaseUnavailable: the connection was lost at the commit, whose outcome is not known.
    """
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield
    except BaseException:
        await _roll_back(transaction, connection)
        raise
    try:
        await transaction.commit()
    except faults.LOST as error:
        raise faults.commit_unknown(where) from error


def is_closed(connection: Connection) -> bool:
    """Say whether the connection is of no more use."""
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:  # the pool has taken it back, as it does with a cut one
        return True


async def _roll_back(transaction: Transaction, connection: Connection) -> None:
    if is_closed(connection):
        return
    try:
        async with asyncio.timeout(ROLLBACK_TIMEOUT_S):
            await transaction.rollback()
    except TimeoutError:
        if not is_closed(connection):  # asyncpg may have cut it by then
            connection.terminate()
        _log.debug("database.rollback_failed", error="TimeoutError")
