"""A word to the leader: repair this now. One row in Postgres, for each agent.

A person at a terminal asks while a daemon leads; the leader does it under its own lead, so that no
two processes repair one agent, and says in the same row that it was done.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..clock import Clock
from ..store.database import Database
from .leadership import QUERIES

POLL_S: Final = 1.0
"""How often the leader looks; a person at a terminal waits for it."""

WAIT_S: Final = 60.0
"""How long the person waits: a remedy is a few requests, a sync of many tools some seconds."""


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks the leader to repair, by the names of guards."""

    id: str
    guards: tuple[str, ...]


class Requests:
    """The requests to the leader of one agent."""

    def __init__(self, db: Database, agent_id: str, clock: Clock | None = None) -> None:
        self._db = db
        self._clock = clock or Clock()
        digest = hashlib.sha256(agent_id.encode()).hexdigest()[:16]
        self._key = f"repair_request.{digest}"

    async def ask(self, guards: Sequence[str], by: str) -> bool:
        """Ask, and wait until it was done; False when the leader did not do it in time."""
        request = {"id": str(uuid.uuid4()), "guards": list(guards), "state": "asked"}
        async with self._db.transaction() as connection:
            await QUERIES.ask(connection, key=self._key, value=request, updated_by=by)
        try:
            async with asyncio.timeout(WAIT_S):
                while await self._state_of(request["id"]) != "done":
                    await self._clock.sleep(POLL_S / 4)
        except TimeoutError:
            return False
        return True

    async def load(self) -> Request | None:
        """Return what is asked and not done yet."""
        value = await self._load()
        if not value or value.get("state") != "asked":
            return None
        return Request(str(value["id"]), tuple(map(str, value["guards"])))

    async def answer(self, request: Request) -> None:
        """Say that it was done."""
        value = {"id": request.id, "guards": list(request.guards), "state": "done"}
        async with self._db.transaction() as connection:
            await QUERIES.answer(connection, key=self._key, id=request.id, value=value)

    async def _state_of(self, request_id: object) -> str | None:
        value = await self._load()
        return str(value["state"]) if value and value.get("id") == request_id else "done"

    async def _load(self) -> Mapping[str, Any] | None:
        async with self._db.connection() as connection:
            return await QUERIES.fetch_request(connection, key=self._key)
