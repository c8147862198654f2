"""The daemons that live, in Postgres: so that status can name the leader and its spares.

A heartbeat is for people and says nothing about who may repair: that is the lock's, in
``leadership``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from .. import logs
from ..clock import Clock
from ..errors import DatabaseUnavailable
from ..store.database import Database
from .leadership import QUERIES

State = Literal["leading", "spare", "stopped"]

ALIVE_S = 30.0
"""A daemon whose last heartbeat is older is gone; it beats every five seconds."""

BEAT_S = 5.0

_log = logs.get("daemon")


@dataclass(frozen=True, slots=True)
class DaemonRow:
    """One daemon. ``age_s``: seconds since its last heartbeat, by the database's clock."""

    holder: str
    agent_name: str
    state: State
    epoch: int | None
    started_at: datetime
    heartbeat_at: datetime
    age_s: float

    @property
    def is_alive(self) -> bool:
        return self.state != "stopped" and self.age_s < ALIVE_S


async def load_daemons(db: Database, agent_name: str) -> tuple[DaemonRow, ...]:
    """Return the daemons of an agent, the leader first."""
    async with db.connection() as connection:
        rows = QUERIES.list_daemons(connection, agent_name=agent_name)
        return tuple([DaemonRow(**dict(row)) async for row in rows])


class Presence:
    """The row of this daemon."""

    def __init__(self, db: Database, agent_name: str, holder: str, clock: Clock) -> None:
        self._db = db
        self._agent_name = agent_name
        self._holder = holder
        self._clock = clock
        self._started_at = clock.now()
        self._state: State = "spare"
        self._epoch: int | None = None

    async def become(self, state: State, epoch: int | None = None) -> None:
        """Say what this daemon is from now on.

        Raises:
            DatabaseUnavailable: it is said at the next beat.
        """
        self._state, self._epoch = state, epoch
        await self._note()

    async def keep(self) -> None:
        """Say so again at each beat; Postgres may come and go."""
        while True:
            await self._clock.sleep(BEAT_S)
            try:
                await self._note()
            except DatabaseUnavailable as error:  # the watch itself tells of it
                _log.debug("daemon.heartbeat_failed", reason=str(error))

    async def _note(self) -> None:
        """Write the row; those that said nothing for a day are forgotten."""
        async with self._db.transaction() as connection:
            await QUERIES.note_daemon(
                connection,
                holder=self._holder,
                agent_name=self._agent_name,
                state=self._state,
                epoch=self._epoch,
                started_at=self._started_at,
            )
            await QUERIES.forget_dead(connection)
