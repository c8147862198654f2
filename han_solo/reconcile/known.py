"""What Postgres remembers of an agent and Letta can not tell: its id, our servers, its blocks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final, Protocol

import asyncpg

from ..clock import Clock
from ..errors import StoreError
from ..store.database import Connection, Database
from ..store.queries import load_queries
from .model import Known, Observed, Switched
from .switch.journal import load_last


class _Queries(Protocol):
    async def fetch_agent_id(self, conn: Connection, *, name: str) -> str | None: ...
    async def insert_agent(self, conn: Connection, *, name: str, agent_id: str) -> str: ...
    async def replace_agent(self, conn: Connection, *, name: str, agent_id: str) -> str: ...
    def list_known_servers(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...
    async def insert_known_server(
        self, conn: Connection, *, server_id: str, name: str, registered_at: datetime
    ) -> str: ...
    def list_known_blocks(
        self, conn: Connection, *, agent_id: str
    ) -> AsyncIterator[asyncpg.Record]: ...
    async def upsert_known_block(
        self, conn: Connection, *, agent_id: str, label: str, block_id: str, seen_at: datetime
    ) -> str: ...
    async def delete_known_block(
        self, conn: Connection, *, agent_id: str, label: str, block_id: str
    ) -> str: ...


_QUERIES: Final = load_queries("agents", _Queries)


class Remember(Protocol):
    """What carrying out a plan leaves behind to be remembered."""

    async def note_server(self, server_id: str, name: str) -> None: ...
    async def note_block(self, agent_id: str, label: str, block_id: str) -> None: ...
    async def forget_block(self, agent_id: str, label: str, block_id: str) -> None: ...


class KnownAgent:
    """What is remembered about one agent, by the name of its spec."""

    def __init__(self, db: Database, agent_name: str, clock: Clock) -> None:
        self._db = db
        self._name = agent_name
        self._clock = clock

    async def load_agent_id(self) -> str | None:
        async with self._db.connection() as connection:
            return await _QUERIES.fetch_agent_id(connection, name=self._name)

    async def store_agent_id(self, agent_id: str, *, replace: bool = False) -> None:
        """Remember the id.

        Args:
            agent_id: Letta's id.
            replace: whether the name has an id already, of an agent that is gone.

        Raises:
            StoreError: the name has another id already, or the id another name.
        """
        write = _QUERIES.replace_agent if replace else _QUERIES.insert_agent
        try:
            async with self._db.transaction() as connection:
                await write(connection, name=self._name, agent_id=agent_id)
        except asyncpg.UniqueViolationError as error:
            raise StoreError(
                f"The agent {agent_id} can not be stored as {self._name!r}: it is known under "
                "another name, or the name has another agent.",
                hint="The table han_solo.agents says which; use the spec of that name.",
            ) from error

    async def load_known(self, agent_id: str) -> Known:
        async with self._db.connection() as connection:
            servers = [row["server_id"] async for row in _QUERIES.list_known_servers(connection)]
            blocks = {
                row["label"]: row["block_id"]
                async for row in _QUERIES.list_known_blocks(connection, agent_id=agent_id)
            }
        return Known(frozenset(servers), blocks, await self.load_switched(agent_id))

    async def load_switched(self, agent_id: str) -> Switched | None:
        """Return the last switch of the agent's model that went through, or is under way."""
        row = await load_last(self._db, agent_id, with_open=True)
        if row is None:
            return None
        at = row.finished_at or row.started_at
        return Switched(row.to_handle, row.spec_handle, row.new_config, at)

    async def note_server(self, server_id: str, name: str) -> None:
        async with self._db.transaction() as connection:
            await _QUERIES.insert_known_server(
                connection, server_id=server_id, name=name, registered_at=self._clock.now()
            )

    async def note_block(self, agent_id: str, label: str, block_id: str) -> None:
        async with self._db.transaction() as connection:
            await _QUERIES.upsert_known_block(
                connection,
                agent_id=agent_id,
                label=label,
                block_id=block_id,
                seen_at=self._clock.now(),
            )

    async def forget_block(self, agent_id: str, label: str, block_id: str) -> None:
        async with self._db.transaction() as connection:
            await _QUERIES.delete_known_block(
                connection, agent_id=agent_id, label=label, block_id=block_id
            )

    async def note_seen(self, observed: Observed, server_name: str, labels: Sequence[str]) -> None:
        """Remember our server, and the blocks of declared labels, where they are news."""
        for server in observed.servers:
            if server.name == server_name and server.id not in observed.known.server_ids:
                await self.note_server(server.id, server.name)
        for label in labels:
            block = observed.agent.block(label)
            if block and observed.known.blocks.get(label) != block.id:
                await self.note_block(observed.agent.id, label, block.id)
