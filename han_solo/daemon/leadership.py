"""Who repairs an agent: one process at a time, by a lock that ends with its session.

Who calls: the daemon, and ``guards run --repair`` at a terminal. The lock is an advisory one on a
direct connection, so it ends with the process or its connection and nothing has to be cleaned up.
Each election begins an epoch, and the database takes no remedy of an older one: a leader that was
frozen while another took over can start nothing when it wakes.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import asyncpg

from .. import logs
from ..clock import Clock
from ..store.database import Connection, Database
from ..store.queries import load_queries

_log = logs.get("leadership")


class _Queries(Protocol):
    async def try_lock(self, conn: Connection, *, key: int) -> bool: ...
    async def elect(
        self, conn: Connection, *, agent_name: str, holder: str, now: datetime
    ) -> int: ...
    async def fetch_leader(self, conn: Connection, *, agent_name: str) -> asyncpg.Record | None: ...


_QUERIES: Final = load_queries("leaders", _Queries)


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
    ) -> None:
        self._db = db
        self._agent_name = agent_name
        self._clock = clock or Clock()
        self._holder = holder or f"process {os.getpid()} on {socket.gethostname()}"

    @asynccontextmanager
    async def try_lead(self) -> AsyncIterator[int | None]:
        """Lead while the body runs, and yield the epoch; None when somebody else leads.

        Raises:
            DatabaseUnavailable: it is not known who leads.
        """
        key = lock_key(self._agent_name)
        async with self._db.direct(application_name="han-solo leader") as connection:
            if not await _QUERIES.try_lock(connection, key=key):
                yield None
                return
            epoch = await _QUERIES.elect(
                connection,
                agent_name=self._agent_name,
                holder=self._holder,
                now=self._clock.now(),
            )
            _log.info("leader.elected", agent=self._agent_name, epoch=epoch)
            yield epoch  # closing the connection gives the lead back

    async def load_leader(self) -> Leader | None:
        """Return who was elected last; None when nobody ever was."""
        async with self._db.connection() as connection:
            row = await _QUERIES.fetch_leader(connection, agent_name=self._agent_name)
        return None if row is None else Leader(**dict(row))


def lock_key(agent_name: str) -> int:
    """Return the number of an agent's lock, the same in every process."""
    digest = hashlib.sha256(f"han-solo leader of {agent_name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
