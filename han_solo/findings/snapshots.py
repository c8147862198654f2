"""What was attached to each known agent in better days, so that a guard can tell what vanished."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import asyncpg

from ..clock import Clock
from ..letta.views import AgentView
from ..store.database import Connection, Database
from ..store.queries import load_queries


class _Queries(Protocol):
    async def see_tool(
        self,
        conn: Connection,
        *,
        agent_id: str,
        tool_name: str,
        tool_id: str,
        server: str | None,
        seen_at: datetime,
    ) -> str: ...
    async def miss_tool(
        self, conn: Connection, *, agent_id: str, tool_name: str, missing_since: datetime
    ) -> datetime | None: ...
    async def forget_tool(self, conn: Connection, *, agent_id: str, tool_name: str) -> str: ...
    def list_tools(self, conn: Connection, *, agent_id: str) -> AsyncIterator[asyncpg.Record]: ...
    def list_agents(self, conn: Connection) -> AsyncIterator[asyncpg.Record]: ...


_QUERIES: Final = load_queries("snapshots", _Queries)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A tool that an agent had. ``missing_since`` is None while it has it."""

    agent_id: str
    tool_name: str
    tool_id: str
    server: str | None
    seen_at: datetime
    missing_since: datetime | None


class SnapshotReader(Protocol):
    """What a check may ask."""

    async def list_agents(self) -> Mapping[str, str]: ...
    async def load(self, agent_id: str) -> tuple[Attachment, ...]: ...


class Snapshots:
    """The attachments of all known agents."""

    def __init__(self, db: Database, clock: Clock | None = None) -> None:
        self._db = db
        self._clock = clock or Clock()

    async def list_agents(self) -> Mapping[str, str]:
        """Return Letta's id of every known agent, by the name of its spec."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_agents(connection)
            return {row["name"]: row["agent_id"] async for row in rows}

    async def load(self, agent_id: str) -> tuple[Attachment, ...]:
        """Return what the agent had when it was last looked at, by name."""
        async with self._db.connection() as connection:
            rows = _QUERIES.list_tools(connection, agent_id=agent_id)
            return tuple([Attachment(**dict(row)) async for row in rows])

    async def note(self, agent: AgentView) -> None:
        """Note what the agent has now; what it had and has no more is missing since now."""
        now = self._clock.now()
        had = await self.load(agent.id)
        has = {tool.name for tool in agent.tools}
        async with self._db.transaction() as connection:
            for tool in agent.tools:
                await _QUERIES.see_tool(
                    connection,
                    agent_id=agent.id,
                    tool_name=tool.name,
                    tool_id=tool.id,
                    server=tool.mcp_server,
                    seen_at=now,
                )
            for attachment in had:
                if attachment.tool_name not in has and attachment.missing_since is None:
                    await _QUERIES.miss_tool(
                        connection,
                        agent_id=agent.id,
                        tool_name=attachment.tool_name,
                        missing_since=now,
                    )

    async def forget(self, agent_id: str, tool_name: str) -> None:
        """Forget a tool that was detached on purpose."""
        async with self._db.transaction() as connection:
            await _QUERIES.forget_tool(connection, agent_id=agent_id, tool_name=tool_name)
