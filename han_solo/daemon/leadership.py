"""Who repairs an agent: one process at a time, by a lock that ends with its session.

Who calls: the daemon, and ``guards run --repair`` at a terminal. The lock is an advisory one on a
direct connection, so it ends with the process or its connection and nothing has to be cleaned up.
The leader speaks on that connection every other second; the server ends a session that is silent
for some seconds, so a leader that is frozen or cut off loses the lock as one that died does.

The leader counts those seconds too, and stops a little before the server can end its session
(``lease``). Each election begins an epoch, and the database takes no remedy of an older one: a
leader that was frozen while another took over can start nothing when it wakes.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import asyncpg

from .. import logs
from ..clock import Clock
from ..stopping import wait_for
from ..store import faults
from ..store.database import Connection, Database
from ..store.queries import load_queries
from .lease import Lead, elapsed_s

IDLE_S: Final = 7.0
"""After so much silence the server ends the leader's session. With the spare's poll on top a lead
passes on within ten seconds."""

LEASE_SHARE: Final = 0.85
"""Of that silence the leader itself bears less, so that it has stopped before another begins."""

BEAT_S: Final = 1.5
"""Three of them may be lost before the lead is."""

POLL_S: Final = (0.5, 1.5)
"""Between these, at random, a spare asks for the lock."""

_log = logs.get("leadership")


class _Queries(Protocol):
    async def limit_idle(self, conn: Connection, *, idle_ms: str) -> str: ...
    async def try_lock(self, conn: Connection, *, key: int) -> bool: ...
    async def elect(
        self, conn: Connection, *, agent_name: str, holder: str, now: datetime
    ) -> int: ...
    async def beat(self, conn: Connection, *, agent_name: str, epoch: int) -> int | None: ...
    async def fetch_leader(self, conn: Connection, *, agent_name: str) -> asyncpg.Record | None: ...
    async def note_daemon(
        self,
        conn: Connection,
        *,
        holder: str,
        agent_name: str,
        state: str,
        epoch: int | None,
        started_at: datetime,
    ) -> str: ...
    async def forget_dead(self, conn: Connection) -> str: ...
    async def ask(
        self, conn: Connection, *, key: str, value: Mapping[str, object], updated_by: str
    ) -> str: ...
    async def fetch_request(self, conn: Connection, *, key: str) -> dict[str, object] | None: ...
    async def answer(
        self,
        conn: Connection,
        *,
        key: str,
        id: str,  # noqa: A002 - the query's own word
        value: Mapping[str, object],
    ) -> str: ...
    def list_daemons(
        self, conn: Connection, *, agent_name: str
    ) -> AsyncIterator[asyncpg.Record]: ...


QUERIES: Final = load_queries("leaders", _Queries)


@dataclass(frozen=True, slots=True)
class Leader:
    """Who was elected last."""

    epoch: int
    holder: str
    elected_at: datetime
    heartbeat_at: datetime


class Leadership:
    """The lead of one agent, by the name of its spec. ``holder`` is how others are told of us."""

    def __init__(
        self,
        db: Database,
        agent_name: str,
        *,
        clock: Clock | None = None,
        holder: str | None = None,
        idle_s: float = IDLE_S,
        beat_s: float = BEAT_S,
    ) -> None:
        self._db = db
        self._agent_name = agent_name
        self._clock = clock or Clock()
        self.holder = holder or f"process {os.getpid()} on {socket.gethostname()}"
        self._idle_s = idle_s
        self._beat_s = beat_s

    @asynccontextmanager
    async def try_lead(self) -> AsyncIterator[Lead | None]:
        """Lead while the body runs; None when somebody else leads.

        Raises:
            DatabaseUnavailable: it is not known who leads.
        """
        async with self._db.direct(application_name="han-solo leader") as connection:
            if not await self._try_lock(connection):
                yield None
                return
            async with self._hold(connection) as lead:
                yield lead

    @asynccontextmanager
    async def wait_to_lead(self, stop: asyncio.Event) -> AsyncIterator[Lead | None]:
        """Wait for the lead, then lead while the body runs; None when ``stop`` is set before.

        Raises:
            DatabaseUnavailable: while it waited.
        """
        async with self._db.direct(application_name="han-solo spare") as connection:
            while not await self._try_lock(connection):
                if await wait_for(stop, timeout_s=random.uniform(*POLL_S)):  # noqa: S311 - jitter
                    yield None
                    return
            async with self._hold(connection) as lead:
                yield lead

    async def _try_lock(self, connection: Connection) -> bool:
        # The limit first: a process that freezes between the two must not keep the lock for ever.
        await QUERIES.limit_idle(connection, idle_ms=str(round(self._idle_s * 1000)))
        return await QUERIES.try_lock(connection, key=lock_key(self._agent_name))

    @asynccontextmanager
    async def _hold(self, connection: Connection) -> AsyncIterator[Lead]:
        asked_s = elapsed_s()
        epoch = await QUERIES.elect(
            connection, agent_name=self._agent_name, holder=self.holder, now=self._clock.now()
        )
        _log.info("leader.elected", agent=self._agent_name, epoch=epoch)
        lead = Lead(epoch, lease_s=self._idle_s * LEASE_SHARE, asked_s=asked_s)
        beating = asyncio.create_task(self._beat(connection, lead))
        try:
            yield lead  # closing the connection gives the lead back
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _beat(self, connection: Connection, lead: Lead) -> None:
        """Speak on the session that has the lock; its silence would end it."""
        why = "another was elected"
        try:
            while True:
                await self._clock.sleep(self._beat_s)
                asked_s = elapsed_s()
                async with asyncio.timeout(lead.left_s):
                    beat = await QUERIES.beat(
                        connection, agent_name=self._agent_name, epoch=lead.epoch
                    )
                if beat is None:
                    break
                lead.renew(asked_s)
        except TimeoutError:
            why = "Postgres did not answer in time, or this process stood still"
        except faults.FOREIGN as error:
            why = f"{type(error).__name__}: {error}"
        finally:
            lead.lost.set()
        _log.warning("leader.lost", agent=self._agent_name, epoch=lead.epoch, reason=why)

    async def load_leader(self) -> Leader | None:
        """Return who was elected last; None when nobody ever was."""
        async with self._db.connection() as connection:
            row = await QUERIES.fetch_leader(connection, agent_name=self._agent_name)
        return None if row is None else Leader(**dict(row))


def lock_key(agent_name: str) -> int:
    """Return the number of an agent's lock, the same in every process."""
    digest = hashlib.sha256(f"han-solo leader of {agent_name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
