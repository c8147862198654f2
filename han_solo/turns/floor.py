"""The floor: one turn of an agent at a time, across processes and machines.

A sender opens its row, which is its place in the queue, and takes the agent's advisory lock when
nobody living is before it. Row and lock belong to one session on a direct connection, so a sender
that dies gives both up and nobody has to clean up after it. The lock is polled for: a waiter that
blocks in the database would hold up index builds.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from ..clock import Clock
from ..errors import AgentBusy, UsageError
from ..store.database import Connection, Database
from ..store.faults import FOREIGN
from .records import QUERIES

POLL_S: Final = (0.05, 0.2)
"""Between these, at random, so that waiters in many processes do not ask in step."""

MAX_WAITING: Final = 20
"""Each waits on a connection of its own; more is a sender that does not read what it is told."""

KEEP_ALIVE_S: Final = 30.0
"""A turn takes minutes, and a firewall or an ``idle_session_timeout`` may cut a silent session;
with it would go the lock."""

T = TypeVar("T")


@dataclass(slots=True)
class HeldFloor:
    """The floor of one agent, for one turn; see ``han_solo.letta.floor``."""

    agent_id: str
    turn_id: UUID
    connection: Connection = field(repr=False)

    def require_held(self) -> None:
        """Return when the session that holds the lock is there.

        Raises:
            AgentBusy: it is not, and another turn may have begun.
        """
        if self.connection.is_closed():
            raise AgentBusy(
                f"The floor of the agent {self.agent_id} was lost with its connection to Postgres.",
                agent_id=self.agent_id,
                hint="Nothing was sent; send it again.",
            )

    async def attend(self, turn: Coroutine[Any, Any, T]) -> T:
        """Wait for a turn, and keep the session from being cut meanwhile.

        A session that is lost all the same ends nothing: the next sender sees in Letta that a turn
        runs, and waits for it.
        """
        task = asyncio.ensure_future(turn)
        try:
            while not (await asyncio.wait({task}, timeout=KEEP_ALIVE_S))[0]:
                with suppress(*FOREIGN):
                    await QUERIES.keep_alive(self.connection)
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})


@asynccontextmanager
async def hold_floor(
    db: Database, agent_id: str, turn_id: UUID, sender: str, *, clock: Clock, deadline: datetime
) -> AsyncIterator[HeldFloor]:
    """Wait for the floor and hold it.

    Args:
        db: where the queue is.
        agent_id: the agent.
        turn_id: a fresh id; it becomes the turn's row.
        sender: who sends, for those who wait.
        clock: waits between tries.
        deadline: when waiting ends.

    Raises:
        AgentBusy: the deadline passed, or too many wait already; nothing was sent.
        UsageError: a turn of that id was there before.
        DatabaseUnavailable: there is no queue without the database; nothing was sent.
    """
    async with db.direct(application_name="han-solo turn") as connection:
        await QUERIES.drop_dead_waiters(connection, agent_id=agent_id)
        await _refuse_long_queue(connection, agent_id, turn_id)
        row = await QUERIES.join_queue(
            connection, turn_id=turn_id, agent_id=agent_id, sender=sender
        )
        if row is None:
            raise UsageError(
                f"The turn {turn_id} was sent before.",
                hint="Find out what came of it; a new message takes a new id.",
            )
        key = _key(agent_id)
        held = False
        try:
            while not held:
                held = await QUERIES.try_floor(connection, id=row["id"], agent_id=agent_id, key=key)
                if held:
                    break
                if clock.now() >= deadline:
                    raise await build_busy(connection, agent_id, turn_id)
                await clock.sleep(random.uniform(*POLL_S))  # noqa: S311 - jitter, not a secret
            yield HeldFloor(agent_id, turn_id, connection)
        finally:
            # What fails here is a lost session, which has given the lock up; a turn that was
            # answered must not end in that error.
            try:
                await QUERIES.leave_queue(connection, turn_id=turn_id)
                if held:
                    await QUERIES.leave_floor(connection, key=key)
            except FOREIGN:
                connection.terminate()


async def _refuse_long_queue(connection: Connection, agent_id: str, turn_id: UUID) -> None:
    waiting = await QUERIES.count_waiting(connection, agent_id=agent_id)
    if waiting >= MAX_WAITING:
        raise await build_busy(
            connection,
            agent_id,
            turn_id,
            sentence=f"{waiting} messages wait for the agent {agent_id} already.",
        )


async def build_busy(
    connection: Connection, agent_id: str, turn_id: UUID, *, sentence: str | None = None
) -> AgentBusy:
    """Build the error that names who has the floor, and since when."""
    row = await QUERIES.fetch_holder(connection, agent_id=agent_id, turn_id=turn_id)
    holder, since = (row["sender"], row["since"].astimezone(UTC)) if row else (None, None)
    if sentence is None and row is not None:
        doing = "is in a turn of" if row["started_at"] else "has to hear first from"
        sentence = (
            f"The agent {agent_id} {doing} {holder}, since {since:%H:%M:%S} UTC "
            f"({row['for_s']:.0f} s)."
        )
    return AgentBusy(
        sentence or f"The agent {agent_id} was busy for too long.",
        agent_id=agent_id,
        holder=holder,
        since=since,
        hint="Nothing was sent. Send it again later, or raise HAN_SOLO_MESSAGE_WAIT_S.",
    )


async def rest(connection: Connection, agent_id: str, gap_s: float, clock: Clock) -> None:
    """Wait until the agent's last turn ended ``gap_s`` ago; for the holder of the floor."""
    rested_s = await QUERIES.fetch_rest_s(connection, agent_id=agent_id)
    while rested_s is not None and rested_s < gap_s:
        await clock.sleep(gap_s - rested_s)
        rested_s = await QUERIES.fetch_rest_s(connection, agent_id=agent_id)


def deadline_in(clock: Clock, wait_s: float) -> datetime:
    return clock.now() + timedelta(seconds=wait_s)


def _key(agent_id: str) -> int:
    digest = hashlib.sha256(f"han-solo turn {agent_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
