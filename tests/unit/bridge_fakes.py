"""Tools and a backend in memory, for the tests of the bridge."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import httpx
from pydantic import Field

from han_solo import BlockContext, MemoryContext, OperatorContext, tool
from han_solo.bridge.app import build_app
from han_solo.bridge.health import Health, Sync
from han_solo.bridge.hosts import build_allowed_hosts
from han_solo.declare import ToolSpec, spec_of
from han_solo.errors import NotFound, Unauthenticated
from han_solo.principals import KIND_SCOPES, Audience, Principal
from han_solo.registry import Registry, build_registry
from han_solo.settings import Settings


class Shade(Enum):
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class Card:
    id: UUID
    created_at: datetime
    title: str
    shades: tuple[Shade, ...] = ()


@tool(effect="read")
async def echo(
    context: MemoryContext,
    text: Annotated[str, Field(max_length=20)],
    shade: Shade = Shade.LIGHT,
    times: Literal[1, 2] = 1,
) -> str:
    """Say the text again.

    Use it when a text must be heard twice.

    Args:
        text: What to say, at most 20 characters.
        shade: How bright it is.
        times: How often.

    Raises:
        NotFound: never.

    Returns:
        The caller's name, kind and agent, and the text.
    """
    principal = context.principal
    return f"{principal.name} {principal.kind} {principal.agent_id}: {text * times} {shade.value}"


@tool(effect="write")
async def make_card(context: MemoryContext, title: str) -> Card:
    """Make a card.

    Args:
        title: Its title.
    """
    return Card(UUID(int=7), datetime(2026, 1, 2, tzinfo=UTC), f"{title} ü", (Shade.DARK,))


@tool(effect="read")
async def find_missing(context: MemoryContext) -> Card:
    """Look for a card that is not there."""
    raise NotFound("There is no card 7.", hint="List them with list_cards.")


@tool(effect="read")
async def break_down(context: MemoryContext) -> str:
    """Break."""
    raise RuntimeError("postgresql://me:hunter2@db/x refused hs_abcdefgh_secretsecretsecret")


@tool(effect="write")
async def write_long(context: MemoryContext, length: int) -> str:
    """Write a long text.

    Args:
        length: Its length in characters.
    """
    return "x" * length


@tool(effect="read")
async def read_block(context: BlockContext) -> str:
    """Read a block."""
    return "block"


@tool(effect="read", audience="client")
async def client_read(context: OperatorContext) -> str:
    """Read what clients may."""
    return "client"


@tool(effect="destructive", audience="operator")
async def erase_all(context: OperatorContext) -> str:
    """Erase everything."""
    return "erased"


SPECS = tuple(
    spec_of(function)
    for function in (
        echo, make_card, find_missing, break_down, write_long, read_block, client_read, erase_all
    )
)  # fmt: skip


def registry() -> Registry:
    return build_registry(SPECS)


def many(count: int) -> Registry:
    """Return a registry of that many tools."""
    made = []
    for number in range(count):

        async def function(context: MemoryContext, word: str) -> str:
            """Return the word.

            Args:
                word: A word.
            """
            return word

        function.__name__ = f"tool_{number:03}"
        made.append(spec_of(tool(effect="read")(function)))
    return build_registry(made)


def principal(kind: Audience, scopes: Iterable[str] | None = None, **fields: Any) -> Principal:
    held = KIND_SCOPES[kind] if scopes is None else frozenset(scopes)
    return Principal(name=f"the-{kind}", kind=kind, scopes=held, **fields)


@dataclass
class FakeTokens:
    """Verifies ``good-<kind>`` tokens, and what is added."""

    principals: dict[str, Principal]
    error: Exception | None = None

    async def verify(self, token: str) -> Principal:
        if self.error:
            raise self.error
        if token not in self.principals:
            raise Unauthenticated("The token is not one of ours.", hint="han-solo tokens list.")
        return self.principals[token]


def tokens() -> FakeTokens:
    kinds: tuple[Audience, ...] = ("agent", "client", "operator")
    return FakeTokens({f"good-{kind}": principal(kind) for kind in kinds})


WELL = Health(memory_db_connected=True, agent_resolved=True, failed={}, sync=Sync(in_sync=True))


@dataclass
class FakeBackend(FakeTokens):
    """A backend whose parts are as the test says."""

    health: Health = WELL
    syncs: int = 0
    bind_error: Exception | None = None

    async def fetch_health(self) -> Health:
        return self.health

    async def sync_tools(self) -> dict[str, object]:
        self.syncs += 1
        return {"outcome": "in_sync"}

    async def fetch_agent_info(self) -> dict[str, object]:
        return {"name": "Ren"}

    async def fetch_jobs_status(self) -> dict[str, object]:
        return {"paused": {"is_paused": False}, "jobs": []}

    async def bind(self, spec: ToolSpec, principal: Principal) -> MemoryContext:
        if self.bind_error:
            raise self.bind_error
        services = ("notecards", "passages", "transcripts")
        parts: dict[str, Any] = {"principal": principal, **dict.fromkeys(services)}
        if spec.context != "memory":
            parts["blocks"] = None
        if spec.context == "operator":
            parts |= {"letta": None, "turns": None}
        return CONTEXTS[spec.context](**parts)


CONTEXTS = {"memory": MemoryContext, "block": BlockContext, "operator": OperatorContext}


def backend() -> FakeBackend:
    return FakeBackend(tokens().principals)


HOST = "127.0.0.1:8283"


@asynccontextmanager
async def serving(
    backend: FakeBackend, tools: Registry | None = None, settings: Settings | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the app in memory; the client speaks to it as to port 8283 of loopback."""
    allowed = build_allowed_hosts(settings or Settings(_env_file=None), 8283)
    app = build_app(registry() if tools is None else tools, backend, allowed)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client,
    ):
        yield client


def bearer(token: str, **headers: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **headers}


async def rpc(
    client: httpx.AsyncClient, method: str, token: str | None, /, **params: Any
) -> httpx.Response:
    headers = {"Accept": "application/json, text/event-stream"}
    if token:
        headers |= bearer(token)
    headers |= params.pop("headers", {})
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await client.post("/mcp", json=body, headers=headers)


async def list_names(client: httpx.AsyncClient, token: str) -> set[str]:
    result = (await rpc(client, "tools/list", token)).json()["result"]
    assert not result.get("nextCursor")
    return {tool["name"] for tool in result["tools"]}


async def call(
    client: httpx.AsyncClient, token: str, name: str, /, headers: dict[str, str] | None = None,
    **arguments: Any,
) -> tuple[bool, str]:  # fmt: skip
    """Return whether it worked, and the text."""
    response = await rpc(
        client, "tools/call", token, name=name, arguments=arguments, headers=headers or {}
    )
    result = response.json()["result"]
    return not result["isError"], result["content"][0]["text"]
