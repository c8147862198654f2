"""An agent on the real Letta, a migrated database, and its turns; used by the tests of turns."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from han_solo.letta.gateway import LettaGateway
from han_solo.letta.views import AgentView
from han_solo.store.database import Database
from han_solo.turns.model import TurnRecord
from han_solo.turns.service import Turns
from tests.contract.actor import ActorTransport, open_gateway
from tests.contract.mcp_stub import McpStub, StubTool, serve
from tests.servers import LettaServer

from .store_fixtures import migrated

MODEL = "openai-proxy/rehearsal"
NOTE = StubTool("note", "Note.", {"type": "object", "properties": {}})
ROOT = Path(__file__).resolve().parents[2]


def script(*steps: Mapping[str, Any]) -> str:
    """Write a message that tells the rehearsal model what to do."""
    return f"```rehearsal\n{json.dumps(list(steps))}\n```"


@dataclass
class World:
    """One agent and what surrounds it."""

    server: LettaServer
    actor: Mapping[str, str]
    database_url: str
    db: Database
    gateway: LettaGateway
    transport: ActorTransport
    http: httpx.AsyncClient
    agent: AgentView

    def turns(self, **options: Any) -> Turns:
        return Turns(self.db, self.gateway, self.agent.id, **({"gap_s": 0.0} | options))

    async def make_agent(self, **options: Any) -> AgentView:
        self.agent = await self.gateway.create_agent(
            name=f"ren-{uuid.uuid4().hex[:6]}", model=MODEL, **options
        )
        return self.agent

    @contextlib.asynccontextmanager
    async def note_tool(self, **options: Any) -> AsyncIterator[str]:
        """Serve the tool ``note`` and make the agent anew with it; yields the tool's id."""
        stub = McpStub([NOTE])
        async with serve(stub, self.server.bridge_ports[0]):
            await self.gateway.register_mcp_server("stub", stub.url, "hs_test")
            (tool,) = [tool for tool in await self.gateway.fetch_tools() if tool.name == "note"]
            more = options.pop("tool_ids", [])
            await self.make_agent(tool_ids=[tool.id, *more], **options)
            yield tool.id

    @contextlib.asynccontextmanager
    async def impatient(self, timeout_s: float = 0.5, **options: Any) -> AsyncIterator[Turns]:
        """Yield turns whose gateway gives up waiting for an answer soon."""
        gateway, _ = open_gateway(self.server.base_url, self.actor, message_timeout_s=timeout_s)
        async with gateway:
            yield Turns(self.db, gateway, self.agent.id, **({"gap_s": 0.0} | options))

    async def start_sender(
        self, sender: str, messages: Sequence[str], *, gap_s: float = 0.0, wait_s: float = 120.0
    ) -> asyncio.subprocess.Process:
        """Start a process that sends the messages, all at once."""
        job = {
            "base_url": self.server.base_url,
            "actor": dict(self.actor),
            "database_url": self.database_url,
            "agent_id": self.agent.id,
            "sender": sender,
            "messages": list(messages),
            "gap_s": gap_s,
            "wait_s": wait_s,
        }
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.integration.turn_sender",
            json.dumps(job),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def wait_for_rows(
        self, holds: Callable[[Sequence[TurnRecord]], bool]
    ) -> list[TurnRecord]:
        """Wait until the turns' rows, oldest first, are as said."""
        async with asyncio.timeout(120):
            while not holds(rows := (await self.turns().list(limit_rows=100))[::-1]):
                await asyncio.sleep(0.05)
        return list(rows)

    async def context(self) -> list[tuple[str, str]]:
        """Return kind and text of the messages in the agent's context, in order."""
        path = f"/v1/agents/{self.agent.id}"
        ids = (await self.http.get(path)).raise_for_status().json()["message_ids"]
        listed = await self.http.get(f"{path}/messages", params={"limit": 1000})
        by_id: dict[str, list[tuple[str, str]]] = {}
        for message in listed.raise_for_status().json():
            text = message.get("content") or message.get("reasoning") or ""
            by_id.setdefault(message["id"], []).append((message["message_type"], str(text)))
        return [found for id_ in ids for found in by_id.get(id_, [])]

    async def user_messages(self, part: str) -> int:
        """Count the user's messages with that text in the agent's whole history."""
        path = f"/v1/agents/{self.agent.id}/messages"
        listed = (await self.http.get(path, params={"limit": 1000})).raise_for_status().json()
        users = [message for message in listed if message["message_type"] == "user_message"]
        return sum(part in str(message["content"]) for message in users)


@contextlib.asynccontextmanager
async def open_world(
    server: LettaServer, actor: Mapping[str, str], database_url: str
) -> AsyncIterator[World]:
    gateway, transport = open_gateway(server.base_url, actor)
    headers = {**actor, "Connection": "close"}  # after a 500 Letta resets the next request
    async with (
        gateway,
        httpx.AsyncClient(base_url=server.base_url, headers=headers, timeout=60) as http,
        migrated(database_url) as db,
    ):
        agent = await gateway.create_agent(name="ren", model=MODEL)
        yield World(server, actor, database_url, db, gateway, transport, http, agent)
