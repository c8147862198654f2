"""The daemons that live, in Postgres: so that status can name the leader and its spares."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..store.database import Database
from .leadership import QUERIES

State = Literal["leading", "spare", "stopped"]

ALIVE_S = 30.0
"""A daemon whose last heartbeat is older is gone; it beats every five seconds."""

BEAT_S = 5.0


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


async def note_daemon(
    db: Database,
    *,
    holder: str,
    agent_name: str,
    state: State,
    epoch: int | None,
    started_at: datetime,
) -> None:
    """Say that a daemon lives, and what it is; those that said nothing for a day are forgotten."""
    async with db.transaction() as connection:
        await QUERIES.note_daemon(
            connection,
            holder=holder,
            agent_name=agent_name,
            state=state,
            epoch=epoch,
            started_at=started_at,
        )
        await QUERIES.forget_dead(connection)
