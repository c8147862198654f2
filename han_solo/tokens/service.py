"""Tokens in Postgres: made, listed, rotated, revoked, and verified on every call of the bridge.

No row is ever deleted: a revoked one is the record of who could call until when. Of the secret only
its SHA-256 is kept, and it is compared in constant time.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Iterable
from datetime import datetime, timedelta
from typing import Final, Protocol

import asyncpg

from ..clock import Clock
from ..errors import NameTaken, NotFound, TokenChanged, Unauthenticated, UsageError
from ..principals import KIND_SCOPES, Audience, Principal
from ..store.database import Connection, Database
from ..store.queries import load_queries
from . import model
from .model import IssuedToken, TokenRecord

LAST_USED_PRECISION: Final = timedelta(minutes=1)
"""How exact ``last_used_at`` is: a busy token costs one write a minute, not one a call."""

MAX_GRACE: Final = timedelta(days=1)
"""A rotated token that lives longer is a second token, and should be made as one."""

_LIVE_NAME: Final = "tokens_one_live_per_name"
_NEW: Final = "Make one: han-solo tokens create NAME --kind client."


class _Queries(Protocol):
    async def insert_token(
        self,
        conn: Connection,
        *,
        token_id: str,
        name: str,
        kind: str,
        scopes: list[str],
        secret_sha256: bytes,
        created_at: datetime,
        expires_at: datetime | None,
    ) -> asyncpg.Record: ...
    async def fetch_token(self, conn: Connection, *, token_id: str) -> asyncpg.Record | None: ...
    async def fetch_live_token(self, conn: Connection, *, name: str) -> asyncpg.Record | None: ...
    def list_tokens(
        self, conn: Connection, *, with_ended: bool, at: datetime
    ) -> AsyncIterator[asyncpg.Record]: ...
    def revoke_tokens(
        self, conn: Connection, *, name_or_id: str, at: datetime
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def retire_token(
        self, conn: Connection, *, token_id: str, revoked_at: datetime
    ) -> asyncpg.Record | None: ...
    async def revoke_expired(self, conn: Connection, *, name: str, at: datetime) -> str: ...
    async def touch_token(
        self, conn: Connection, *, token_id: str, at: datetime, not_since: datetime
    ) -> str: ...


_QUERIES: Final = load_queries("tokens", _Queries)


class Tokens:
    """The tokens of one installation."""

    def __init__(self, db: Database, clock: Clock | None = None) -> None:
        self._db = db
        self._clock = clock or Clock()

    async def create(
        self,
        name: str,
        kind: Audience,
        scopes: Iterable[str] | None = None,
        expires_at: datetime | None = None,
    ) -> IssuedToken:
        """Make a token.

        Args:
            name: unique among the live ones.
            kind: how far the caller is trusted.
            scopes: what it may do; by default the widest set of its kind.
            expires_at: aware; by default it does not expire.

        Raises:
            UsageError: a name, kind, scope or time that can not be, or a live token of that name.
        """
        model.check_name(name)
        granted = model.choose_scopes(model.check_kind(kind), scopes)
        now = self._clock.now()
        if expires_at is not None and expires_at <= now:
            raise UsageError(
                f"The token {name!r} would have expired already.", hint="Give a time to come."
            )
        async with self._db.transaction() as connection:
            await _QUERIES.revoke_expired(connection, name=name, at=now)
            return await _insert(
                connection, name=name, kind=kind, scopes=granted, now=now, expires_at=expires_at
            )

    async def list(self, *, include_revoked: bool = False) -> tuple[TokenRecord, ...]:
        """List the tokens that can be used, or all there ever were, by name and age."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_tokens(
                connection, with_ended=include_revoked, at=self._clock.now()
            )
            return tuple([_record(row) async for row in rows])

    async def revoke(self, name_or_id: str) -> tuple[TokenRecord, ...]:
        """End a token now, and with a name every one of that name that is still in its grace.

        Revoking a token by its id twice changes nothing the second time.

        Returns:
            the tokens, as they are now.

        Raises:
            NotFound: no token of that name is good, and there is none of that id.
            UsageError: it can be neither a name nor an id.
        """
        model.check_name(name_or_id)
        now = self._clock.now()
        async with self._db.transaction() as connection:
            rows = _QUERIES.revoke_tokens(connection, name_or_id=name_or_id, at=now)
            revoked = tuple([_record(row) async for row in rows])
            if revoked:
                return revoked
            row = await _QUERIES.fetch_token(connection, token_id=name_or_id)
        if row is None:
            raise NotFound(
                f"There is no live token {name_or_id!r}.",
                hint="`han-solo tokens list --all` shows every token, with its id.",
            )
        return (_record(row),)

    async def rotate(self, name: str, *, grace: timedelta = timedelta()) -> IssuedToken:
        """Replace a token by a new one of the same name, kind and scopes, in one transaction.

        One that expires gets as long again as the old one had.

        Args:
            name: of a token that was not revoked; it may have expired.
            grace: how long the old one is still good, to change it over without an outage.

        Raises:
            NotFound: no live token of that name.
            UsageError: a name that can not be, or a grace below 0 or above ``MAX_GRACE``.
            StoreError: someone else rotated or revoked it at the same moment.
        """
        if not timedelta() <= grace <= MAX_GRACE:
            raise UsageError(
                "The grace of a rotated token is from 0 to 24 hours.",
                hint="Create a second token if both shall live.",
            )
        model.check_name(name)
        now = self._clock.now()
        async with self._db.transaction() as connection:
            row = await _QUERIES.fetch_live_token(connection, name=name)
            if row is None:
                raise NotFound(f"There is no live token {name!r}.", hint=_NEW)
            old = _record(row)
            if not await _QUERIES.retire_token(connection, token_id=old.id, revoked_at=now + grace):
                raise TokenChanged(
                    f"The token {name!r} was rotated or revoked by someone else at this moment; "
                    "this call changed nothing.",
                    hint="Look with `han-solo tokens list`, and rotate again if you still want to.",
                )
            expires_at = now + (old.expires_at - old.created_at) if old.expires_at else None
            return await _insert(
                connection,
                name=name,
                kind=old.kind,
                scopes=model.choose_scopes(old.kind, old.scopes & KIND_SCOPES[old.kind]),
                now=now,
                expires_at=expires_at,
            )

    async def verify(self, token: str) -> Principal:
        """Return who bears the token; one indexed read, and a write at most once a minute.

        Scopes that this release no longer gives to the kind are left out.

        Raises:
            Unauthenticated: not one of ours, revoked or expired.
        """
        parsed = model.parse_text(token)
        if parsed is None:
            raise Unauthenticated("That is not a han-solo token.", hint=_NEW)
        token_id, secret = parsed
        now = self._clock.now()
        async with self._db.connection() as connection:
            row = await _QUERIES.fetch_token(connection, token_id=token_id)
            stored = row["secret_sha256"] if row else bytes(32)
            # Before anything is said about it: only its bearer learns that a token has ended.
            if not hmac.compare_digest(model.hash_secret(secret), stored) or row is None:
                raise Unauthenticated("The token is not known.", hint=_NEW)
            record = _record(row)
            state = record.state(now)
            if state == "revoked":
                raise Unauthenticated(
                    f"The token {record.name!r} was revoked.",
                    hint="Use the one that replaced it, or make one: han-solo tokens create "
                    f"{record.name} --kind {record.kind}.",
                )
            if state == "expired":
                raise Unauthenticated(
                    f"The token {record.name!r} has expired.",
                    hint=f"Replace it: han-solo tokens rotate {record.name}.",
                )
            not_since = now - LAST_USED_PRECISION
            if record.last_used_at is None or record.last_used_at < not_since:
                await _QUERIES.touch_token(
                    connection, token_id=record.id, at=now, not_since=not_since
                )
        return Principal(record.name, record.kind, record.scopes & KIND_SCOPES[record.kind])


async def _insert(
    connection: Connection,
    *,
    name: str,
    kind: Audience,
    scopes: frozenset[str],
    now: datetime,
    expires_at: datetime | None,
) -> IssuedToken:
    token_id, secret = model.new_id(), model.new_secret()
    try:
        row = await _QUERIES.insert_token(
            connection,
            token_id=token_id,
            name=name,
            kind=kind,
            scopes=sorted(scopes),
            secret_sha256=model.hash_secret(secret),
            created_at=now,
            expires_at=expires_at,
        )
    except asyncpg.UniqueViolationError as error:
        if error.constraint_name != _LIVE_NAME:
            raise
        raise NameTaken(
            f"There is a live token {name!r} already.",
            hint=f"Take another name, or replace it: han-solo tokens rotate {name}.",
        ) from error
    return IssuedToken(_record(row), model.build_text(token_id, secret))


def _record(row: asyncpg.Record) -> TokenRecord:
    return TokenRecord(
        id=row["id"],
        name=row["name"],
        kind=row["kind"],
        scopes=frozenset(row["scopes"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        last_used_at=row["last_used_at"],
    )
