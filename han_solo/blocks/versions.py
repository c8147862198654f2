"""The versions of core blocks in Postgres, the open writes, and the lock that orders writers.

One object a process, shared by all its ``Blocks``. Letta has no compare-and-set, so all our writers
of a block take turns: in this process by a lock of its own, across processes by an advisory lock of
Postgres that lasts as long as a transaction. It is not a session lock, so it works behind a
transaction pooler, and Postgres frees it when a process dies.

The intent of a write has to be durable before Letta is told, while the lock is still held; so it is
committed on a second connection. That the first one is still there when the version is recorded is
the proof that the lock was held all along.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final
from uuid import uuid4
from weakref import WeakValueDictionary

import asyncpg

from ..clock import Clock
from ..errors import BlockBusy
from ..store.database import Connection, Database
from .facts import AgentFacts
from .model import Version, VersionEntry
from .records import Head, Intent, Text
from .statements import STATEMENTS

LATEST: Final = 2**31 - 1
"""Above every version number."""

SETTLE_AFTER_S: Final = 5.0
"""From when on an intent that is not seen in Letta counts as not landed. A write is given up unless
it is sent within half of that, and Letta takes some 30 ms; a process that died may have sent it
just before."""

KEPT_ABANDONED_S: Final = 86_400.0
"""How long an abandoned intent is kept, to know its author should Letta carry it out late."""


class HeldBlock:
    """One block whose lock is held; what is recorded here counts once the lock is given back."""

    def __init__(self, connection: Connection, block_id: str, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self.block_id: Final = block_id

    @property
    def is_lost(self) -> bool:
        """Say whether the connection is seen to be gone, and the lock with it."""
        return self._connection.is_closed()

    async def load_head(self) -> Head | None:
        """Load the last version; a statement of its own sees what the last holder recorded."""
        return (await _load_heads(self._connection, (self.block_id,))).get(self.block_id)

    async def load_open_intent(self) -> Intent | None:
        """Load a write that was cut short: its writer no longer holds the lock."""
        row = await STATEMENTS.fetch_open_intent(self._connection, block_id=self.block_id)
        return None if row is None else Intent.of(row)

    async def load_version(self, number: int) -> Version:
        row = await STATEMENTS.fetch_version(
            self._connection, block_id=self.block_id, number=number
        )
        assert row is not None, "versions are never deleted"
        return Version(**row)

    async def load_texts(self, limit_rows: int) -> dict[int, str]:
        """Load the texts of the newest versions, newest first."""
        rows = STATEMENTS.list_texts(
            self._connection, block_id=self.block_id, limit_rows=limit_rows
        )
        return {row["number"]: row["value"] async for row in rows}

    async def find_text(self, sha256: str) -> int | None:
        """Find the newest version that held a text."""
        return await STATEMENTS.find_by_text(
            self._connection, block_id=self.block_id, sha256=sha256
        )

    async def find_abandoned(self, sha256: str) -> Intent | None:
        row = await STATEMENTS.find_abandoned(
            self._connection, block_id=self.block_id, sha256=sha256
        )
        return None if row is None else Intent.of(row)

    async def find_recorded(self, intent: Intent) -> int | None:
        """Find the version that an intent became, if it did."""
        return await STATEMENTS.find_by_intent(self._connection, intent_id=intent.intent_id)

    async def record(self, intent: Intent) -> int:
        """Turn an intent that landed into the next version, and return its number."""
        row = await STATEMENTS.record_intent(
            self._connection, intent_id=intent.intent_id, at=self._clock.now()
        )
        if row is None:  # it was abandoned so long ago that its row is gone
            return await self.record_text(intent.text)
        return int(row["number"])

    async def record_text(self, text: Text) -> int:
        """Add a text that Letta was found to hold as the next version, and return its number."""
        row = await STATEMENTS.insert_version(
            self._connection, at=self._clock.now(), **text.columns()
        )
        return int(row["number"])

    async def abandon(self, intent: Intent) -> None:
        """Close an intent that did not land as far as can be seen, and tidy up older ones."""
        await STATEMENTS.abandon_intent(self._connection, intent_id=intent.intent_id)
        await STATEMENTS.delete_old_intents(
            self._connection, block_id=self.block_id, kept_s=KEPT_ABANDONED_S
        )


class BlockVersions:
    """The versions of all core blocks of one installation."""

    def __init__(
        self, db: Database, clock: Clock | None = None, *, settle_after_s: float = SETTLE_AFTER_S
    ) -> None:
        self._db = db
        self._clock = clock or Clock()
        self.settle_after_s: Final = settle_after_s
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # A holder keeps one connection and needs a second for a moment: half of the pool may hold,
        # or all of it would, each waiting for one more.
        self._holders = asyncio.Semaphore(max(1, db.pool_size // 2))
        self.agents: Final = AgentFacts()

    @asynccontextmanager
    async def hold(self, block_id: str, *, wait_s: float) -> AsyncIterator[HeldBlock]:
        """Hold a block's lock; what was recorded is committed when the body ends without an error.

        Raises:
            BlockBusy: others held it all the time.
            DatabaseUnavailable: also at the end, when the connection was lost meanwhile.
        """
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        lock = self._locks.setdefault(block_id, asyncio.Lock())
        try:
            async with asyncio.timeout(wait_s):
                await lock.acquire()
        except TimeoutError as error:
            raise _busy(wait_s) from error
        try:
            async with self._holders, self._db.transaction() as connection:
                await _lock(connection, block_id, max(0.001, until_s - loop.time()))
                yield HeldBlock(connection, block_id, self._clock)
        finally:
            lock.release()

    async def open_intent(self, text: Text, base: int) -> Intent:
        """Note durably what is about to be sent to Letta; the caller holds the block."""
        intent = Intent(uuid4(), base, text)
        async with self._second() as connection:
            await STATEMENTS.insert_intent(
                connection, intent_id=intent.intent_id, base=base, **text.columns()
            )
        return intent

    async def drop_intent(self, intent: Intent) -> None:
        """Forget an intent that certainly did not land."""
        async with self._second() as connection:
            await STATEMENTS.delete_intent(connection, intent_id=intent.intent_id)

    async def abandon_intent(self, intent: Intent) -> None:
        """Close an intent that did not land as far as can be seen."""
        async with self._second() as connection:
            await STATEMENTS.abandon_intent(connection, intent_id=intent.intent_id)

    async def load_heads(self, block_ids: Sequence[str]) -> dict[str, Head]:
        """Load the last versions, and whether writes are open; blocks without versions are absent.

        Without the lock: a write that is under way in another process shows as open.
        """
        async with self._db.connection() as connection:
            return await _load_heads(connection, block_ids)

    async def list_entries(
        self, block_id: str, *, limit_rows: int, before: int | None
    ) -> tuple[VersionEntry, ...]:
        """List versions without their texts, newest first."""
        async with self._db.connection() as connection:
            rows = STATEMENTS.list_versions(
                connection, block_id=block_id, before=before or LATEST, limit_rows=limit_rows
            )
            return tuple([VersionEntry(**row) async for row in rows])

    async def load_version(self, block_id: str, number: int) -> Version | None:
        async with self._db.connection() as connection:
            row = await STATEMENTS.fetch_version(connection, block_id=block_id, number=number)
        return None if row is None else Version(**row)

    async def find_block(self, agent_id: str, label: str) -> str | None:
        """Find the block that an agent had under a label when it was last written."""
        async with self._db.connection() as connection:
            return await STATEMENTS.find_block(connection, agent_id=agent_id, label=label)

    async def find_former(
        self, agent_id: str, label: str, block_ids: Sequence[str]
    ) -> Version | None:
        """Find the last text that an agent had under a label in a block other than those."""
        async with self._db.connection() as connection:
            row = await STATEMENTS.find_former(
                connection, agent_id=agent_id, label=label, block_ids=block_ids
            )
        return None if row is None else Version(**row)

    @asynccontextmanager
    async def _second(self) -> AsyncIterator[Connection]:
        """Lend a connection beside the one that holds the lock."""
        if self._db.pool_size > 1:
            async with self._db.connection() as connection:
                yield connection
        else:
            async with self._db.direct() as connection:
                yield connection


async def _load_heads(connection: Connection, block_ids: Sequence[str]) -> dict[str, Head]:
    return {
        row["block_id"]: Head(row["number"], row["sha256"], row["is_open"])
        async for row in STATEMENTS.list_heads(connection, block_ids=block_ids)
        if row["number"] is not None
    }


async def _lock(connection: Connection, block_id: str, wait_s: float) -> None:
    """Take the lock, in the order of asking.

    Waiting inside Postgres is what deadlocks a migration that builds an index concurrently under a
    lock of its own. Not here: no holder of a block's lock ever waits for a migration's end longer
    than its deadline, and in return no process starves another.
    """
    if await STATEMENTS.try_lock(connection, block_id=block_id):
        return
    await STATEMENTS.limit_lock_wait(connection, timeout=f"{max(1, int(wait_s * 1000))}ms")
    try:
        await STATEMENTS.wait_lock(connection, block_id=block_id)
    except asyncpg.LockNotAvailableError as error:
        raise _busy(wait_s) from error
    await STATEMENTS.limit_lock_wait(connection, timeout="0")


def _busy(wait_s: float) -> BlockBusy:
    return BlockBusy(
        f"Other writers held this core block for {wait_s:.1f} s.",
        hint="Nothing was written; try again.",
    )
