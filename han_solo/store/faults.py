"""Turn what asyncpg raises about the server into our errors; what is a bug stays as it is.

``DatabaseUnavailable`` is whatever another try can heal; ``DatabaseRefused`` is a server that
answers and will answer the same again. Syntax errors, violated constraints and wrong types are not
touched: whoever wrote the statement knows what they mean.

The tables are read from the top; the first rule whose exceptions match is taken.
"""

from __future__ import annotations

import re
import socket
import ssl
import traceback
from dataclasses import dataclass
from typing import Final

import asyncpg

from ..errors import DatabaseRefused, DatabaseUnavailable

FOREIGN: Final = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""What asyncpg may raise; ``TimeoutError`` and ``ConnectionError`` are kinds of ``OSError``.

``InternalClientError`` is how it stumbles over a connection that the server has just ended and that
is not known to be closed yet; two calls at once on one connection are an ``InterfaceError``.
"""

_MODULE: Final = re.compile(r"asyncpg(\.|$)")


@dataclass(frozen=True, slots=True)
class _Rule:
    """One sentence; ``{where}``, ``{timeout_s}`` and ``{error}`` are filled in."""

    errors: tuple[type[Exception], ...]
    sentence: str
    hint: str
    refused: bool = False

    def build(self, error: Exception, where: str, timeout_s: float) -> DatabaseUnavailable:
        kind = DatabaseRefused if self.refused else DatabaseUnavailable
        words = str(error).rstrip(".") or type(error).__name__
        return kind(
            self.sentence.format(where=where, timeout_s=f"{timeout_s:g}", error=words),
            hint=self.hint,
        )


_START: Final = "Start it (scripts/up starts the embedded one), or mend HAN_SOLO_DATABASE_URL."

_LOST: Final = _Rule(
    (
        ConnectionError,
        asyncpg.PostgresConnectionError,
        asyncpg.AdminShutdownError,
        asyncpg.CrashShutdownError,
        asyncpg.CannotConnectNowError,
        asyncpg.IdleInTransactionSessionTimeoutError,
    ),
    "The connection to Postgres at {where} was lost: {error}.",
    "It is made anew at the next call; `han-solo doctor` says whether Postgres answers.",
)

LOST: Final[tuple[type[Exception], ...]] = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    *_LOST.errors,
)
"""What a commit without an answer raises; whether it took place is then not known."""

_STATEMENT: Final = (
    _Rule(
        (TimeoutError, asyncpg.QueryCanceledError),
        "A statement on Postgres at {where} was stopped after {timeout_s} s.",
        "Look for who holds a lock (pg_stat_activity), or raise HAN_SOLO_DATABASE_TIMEOUT_S.",
    ),
    _Rule(
        (asyncpg.TooManyConnectionsError,),
        "Postgres at {where} has no connection left for us.",
        "Lower HAN_SOLO_DATABASE_POOL_SIZE, raise its max_connections, or put a pooler before it "
        "(HAN_SOLO_DATABASE_POOLER=transaction).",
    ),
    _Rule(
        (asyncpg.InsufficientResourcesError,),
        "Postgres at {where} is out of resources: {error}.",
        "Give it disk or memory.",
    ),
    _Rule(
        (asyncpg.ReadOnlySQLTransactionError,),
        "Postgres at {where} is read-only, as a standby is.",
        "Point HAN_SOLO_DATABASE_URL at the primary.",
    ),
)

_CONNECT: Final = (
    _Rule(
        (TimeoutError,),
        "Postgres at {where} did not answer within {timeout_s} s.",
        _START,
    ),
    _Rule(
        (ConnectionRefusedError,),
        "Nothing listens at {where}: Postgres is not running there.",
        _START,
    ),
    _Rule(
        (socket.gaierror,),
        "The host of {where} is not known: {error}.",
        "Mend HAN_SOLO_DATABASE_URL, or the network.",
    ),
    _Rule(
        (ssl.SSLError,),
        "No TLS connection to Postgres at {where}: {error}.",
        "Mend sslmode and sslrootcert in HAN_SOLO_DATABASE_URL.",
        refused=True,
    ),
    _Rule(
        (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError),
        "Postgres at {where} refuses the user or the password: {error}.",
        "Mend HAN_SOLO_DATABASE_URL; special characters of a password are written as %XX.",
        refused=True,
    ),
    _Rule(
        (asyncpg.InvalidCatalogNameError,),
        "Postgres answers, but there is no database at {where}: {error}.",
        "Make it (createdb, owned by the user of the URL), or mend HAN_SOLO_DATABASE_URL.",
        refused=True,
    ),
    _Rule(
        (asyncpg.InterfaceError,),
        "The URL of Postgres at {where} can not be used: {error}.",
        "Mend HAN_SOLO_DATABASE_URL.",
        refused=True,
    ),
    *_STATEMENT,
    _Rule((OSError, *_LOST.errors), "Postgres at {where} does not answer: {error}.", _START),
    _Rule(
        (asyncpg.PostgresError,),
        "Postgres at {where} refuses the connection: {error}.",
        "Mend what it names, in HAN_SOLO_DATABASE_URL or at the server.",
        refused=True,
    ),
)


def connect_fault(error: Exception, where: str, timeout_s: float) -> DatabaseUnavailable | None:
    """Return our error for a connection that could not be made, or None for a bug."""
    return _first(_CONNECT, error, where, timeout_s)


def statement_fault(
    error: Exception, where: str, timeout_s: float, *, closed: bool
) -> DatabaseUnavailable | None:
    """Return our error for a statement that the server could not serve, or None for a bug.

    Args:
        error: what was raised.
        where: ``host:port/database``.
        timeout_s: what a statement may take.
        closed: whether its connection is closed by now; asyncpg then raises an ``InterfaceError``
            of the same class as for a misuse.
    """
    if isinstance(error, asyncpg.InternalClientError):
        return _LOST.build(ConnectionResetError("the server ended it"), where, timeout_s)
    if closed and isinstance(error, asyncpg.InterfaceError):
        return _LOST.build(error, where, timeout_s)
    return _first((*_STATEMENT, _LOST), error, where, timeout_s)


def is_foreign(error: Exception) -> bool:
    """Say whether an ``OSError`` was raised elsewhere in a body that holds a connection.

    asyncpg raises the built-in ``TimeoutError`` and ``ConnectionError``, as a call to another
    server does; which of them it was is told by the frames that the error came through.
    """
    if not isinstance(error, OSError):
        return False
    frames = traceback.walk_tb(error.__traceback__)
    return not any(_MODULE.match(frame.f_globals.get("__name__", "")) for frame, _ in frames)


def pool_exhausted(where: str, pool_size: int, timeout_s: float) -> DatabaseUnavailable:
    """Return the error of a caller that waited in vain for a connection of the pool."""
    return DatabaseUnavailable(
        f"All {pool_size} connections to Postgres at {where} were busy for {timeout_s:g} s.",
        hint="Raise HAN_SOLO_DATABASE_POOL_SIZE, or look for what holds them (pg_stat_activity).",
    )


def commit_unknown(where: str) -> DatabaseUnavailable:
    """Return the error of a commit that got no answer; it must not be repeated unseen."""
    error = DatabaseUnavailable(
        f"The connection to Postgres at {where} was lost at the commit, so it is not known whether "
        "the write took place.",
        hint="Look before you write it again.",
    )
    error.retryable = False
    return error


def _first(
    rules: tuple[_Rule, ...], error: Exception, where: str, timeout_s: float
) -> DatabaseUnavailable | None:
    for rule in rules:
        if isinstance(error, rule.errors):
            return rule.build(error, where, timeout_s)
    return None
