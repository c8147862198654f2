"""Read what is: the agent, the organisation's tools, its MCP servers, and the bridge's own list.

Four requests, all at once, whatever the number of tools; a sync without anything to do makes no
others (a renamed agent costs a fifth). From here on only our own values are used, so ``diff``
knows nothing of Letta's shapes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self, TypeVar

from ..errors import BridgeError
from ..letta.views import AgentView, BlockView, McpServerView, ToolView
from ..registry import ListedTool
from .fingerprint import fingerprint_listed, fingerprint_schema, fingerprint_stored
from .gateway import Gateway
from .model import (
    MCP_TYPE,
    DesiredTool,
    Known,
    Listing,
    NoListing,
    Observed,
    ObservedAgent,
    ObservedBlock,
    ObservedServer,
    ObservedTool,
)
from .spec import ToolRule

ListLive = Callable[[], Awaitable[tuple[ListedTool, ...]]]
"""Asks the running bridge for its list, with the agent's token."""

T = TypeVar("T")


async def observe(
    gateway: Gateway,
    agent_id: str,
    name: str,
    list_live: ListLive,
    load_known: Callable[[], Awaitable[Known]],
) -> Observed:
    """Read everything that is compared.

    Args:
        gateway: Letta.
        agent_id: the agent, which is known by its id alone.
        name: the spec's name. Only when the agent bears another is it asked who else bears it.
        list_live: asks the bridge.
        load_known: loads what we remember.

    Raises:
        AgentGone: a confirmed 404 of the agent.
        LettaError: anything else that Letta did not answer; nothing is concluded from it.
    """
    async with _Together() as together:
        agent = together.start(gateway.fetch_agent(agent_id))
        tools = together.start(gateway.fetch_tools())
        servers = together.start(gateway.fetch_mcp_servers())
        listing = together.start(_list(list_live))
        known = together.start(load_known())
    found = agent.result()
    namesakes = await gateway.find_agents(name) if found.name != name else ()
    return Observed(
        agent=build_agent(found),
        tools=build_tools(tools.result()),
        servers=tuple(build_server(server) for server in servers.result()),
        listing=listing.result(),
        known=known.result(),
        namesakes=tuple(view.id for view in namesakes),
    )


def build_agent(view: AgentView) -> ObservedAgent:
    """Return the agent as it is compared."""
    return ObservedAgent(
        id=view.id,
        name=view.name,
        system=view.system,
        llm_config=view.llm_config,
        tools=build_tools(view.tools),
        blocks=tuple(_build_block(block) for block in view.blocks),
        tags=view.tags,
        tool_rules=tuple(_build_rule(rule) for rule in view.tool_rules),
    )


def build_tools(views: tuple[ToolView, ...]) -> tuple[ObservedTool, ...]:
    """Return tools as they are compared."""
    return tuple(
        ObservedTool(
            id=view.id,
            name=view.name,
            tool_type=view.tool_type,
            server=view.mcp_server,
            fingerprint=_fingerprint(view),
        )
        for view in views
    )


def _fingerprint(view: ToolView) -> str | None:
    if view.mcp_server is not None:
        return fingerprint_stored(view)
    return fingerprint_schema(view) if view.tool_type == MCP_TYPE else None


def build_server(view: McpServerView) -> ObservedServer:
    """Return an MCP server as it is compared."""
    return ObservedServer(id=view.id, name=view.name, url=view.url, token=view.token)


def build_listed(tools: tuple[ListedTool, ...]) -> tuple[DesiredTool, ...]:
    """Return a list of MCP tools, the registry's or the bridge's, by name."""
    return tuple(
        sorted(
            (DesiredTool(tool.name, fingerprint_listed(tool)) for tool in tools),
            key=lambda tool: tool.name,
        )
    )


async def _list(list_live: ListLive) -> Listing | NoListing:
    try:
        return Listing(build_listed(await list_live()))
    except BridgeError as error:
        return NoListing(error.message, error.hint)


def _build_block(view: BlockView) -> ObservedBlock:
    return ObservedBlock(
        id=view.id,
        label=view.label,
        limit=view.limit,
        read_only=view.read_only,
        description=view.description,
        length=len(view.value),
    )


def _build_rule(rule: Mapping[str, object]) -> ToolRule:
    children = rule.get("children")
    limit = rule.get("max_count_limit")
    return ToolRule(
        type=str(rule.get("type")),
        tool_name=str(rule.get("tool_name")),
        children=tuple(str(child) for child in children) if isinstance(children, list) else (),
        max_count_limit=limit if isinstance(limit, int) else None,
    )


class _Together:
    """Tasks that end together: when one fails the others are cancelled and its own error raised.

    A plain ``TaskGroup`` would raise a group of errors, and callers know ours by their class.
    """

    def __init__(self) -> None:
        self._tasks: list[asyncio.Future[Any]] = []

    def start(self, call: Awaitable[T]) -> asyncio.Future[T]:
        task = asyncio.ensure_future(call)
        self._tasks.append(task)
        return task

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        try:
            if kind is None:
                await asyncio.gather(*self._tasks)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
