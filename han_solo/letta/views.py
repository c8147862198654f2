"""What Letta says, as frozen values: agents, tools, blocks, MCP servers, models.

Parsed from the JSON of the answers and not from the SDK's classes: those rename fields of the
``llm_config``, guess at unions and drop what they do not know, while a config that is written back
must carry every field. Unknown fields are ignored here; one that is missing and needed is an error
that names it, since a half-read agent would look like drift.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from . import fields
from .fields import Json
from .turns import ToolCall, ToolReturn, Turn, TurnMessage

__all__ = [
    "AgentView",
    "BlockView",
    "HealthView",
    "Json",
    "McpServerView",
    "ModelView",
    "ToolCall",
    "ToolReturn",
    "ToolRun",
    "ToolView",
    "Turn",
    "TurnMessage",
]

MCP_TAG_PREFIX: Final = "mcp:"
"""Letta tags a tool of an MCP server with ``mcp:<server>``; its metadata says the same."""

RETURN_CHAR_LIMIT: Final = 50_000
"""What Letta lets a newly registered tool return, in characters; more is cut."""

BEARER: Final = "Bearer "


@dataclass(frozen=True, slots=True)
class ToolView:
    """One tool of the organisation.

    ``tool_type`` is Letta's word: ``external_mcp``, ``custom``, ``letta_core``,
    ``letta_memory_core`` and others; ``mcp_server`` is the name of the server that owns an
    ``external_mcp`` tool. ``json_schema`` holds name, description and parameters.
    ``requires_approval`` is what an agent gets that the tool is attached to; a new one does not.
    """

    id: str
    name: str
    tool_type: str
    description: str
    json_schema: Json
    tags: tuple[str, ...] = ()
    mcp_server: str | None = None
    mcp_server_id: str | None = None
    requires_approval: bool = False
    return_char_limit: int = RETURN_CHAR_LIMIT
    source_code: str = field(default="", repr=False)
    """Python of a custom tool, which Letta runs in its own sandbox; a stub for other kinds."""

    @property
    def is_letta_builtin(self) -> bool:
        return self.tool_type.startswith("letta_")


@dataclass(frozen=True, slots=True)
class BlockView:
    """One core block. ``limit`` is in characters and Letta does not enforce it."""

    id: str
    label: str
    value: str = field(repr=False)
    limit: int
    read_only: bool
    description: str


@dataclass(frozen=True, slots=True)
class AgentView:
    """One agent, with everything attached to it.

    ``llm_config`` is complete: it is written back whole, or Letta loses what is missing.
    """

    id: str
    name: str
    agent_type: str
    system: str = field(repr=False)
    llm_config: Json
    embedding: str | None
    tools: tuple[ToolView, ...]
    blocks: tuple[BlockView, ...]
    tags: tuple[str, ...]
    tool_rules: tuple[Json, ...]
    description: str | None
    last_stop_reason: str | None

    def block(self, label: str) -> BlockView | None:
        """Return the block of that label; Letta allows one a label on an agent."""
        return next((block for block in self.blocks if block.label == label), None)

    def tool(self, name: str) -> ToolView | None:
        """Return the attached tool of that name."""
        return next((tool for tool in self.tools if tool.name == name), None)


@dataclass(frozen=True, slots=True)
class McpServerView:
    """One registered MCP server. Letta gives its token out in the clear, so it is kept from repr.

    ``token`` is without the ``Bearer`` that Letta adds; None when there is none or when the
    server's authentication is in custom headers.
    """

    id: str
    name: str
    server_type: str
    url: str | None
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ModelView:
    """One model that this Letta can use; ``max_context_window`` is the model's own maximum."""

    handle: str
    name: str
    provider: str
    context_window: int
    max_context_window: int


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What one run of a tool gave; Letta tells the text of a success only."""

    succeeded: bool
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class HealthView:
    """What ``/v1/health/`` says."""

    status: str
    version: str


def parse_agent(source: object) -> AgentView:
    body = fields.as_object(source, "agent")
    rules = fields.opt_list(body.get("tool_rules"))
    blocks = tuple(parse_block(block) for block in fields.need_list(body, "blocks", "agent"))
    return AgentView(
        id=fields.need_str(body, "id", "agent"),
        name=fields.need_str(body, "name", "agent"),
        agent_type=fields.need_str(body, "agent_type", "agent"),
        system=fields.opt_str(body, "system") or "",
        llm_config=fields.as_object(fields.need(body, "llm_config", "agent"), "agent's llm_config"),
        embedding=fields.opt_str(body, "embedding"),
        tools=tuple(parse_tool(tool) for tool in fields.need_list(body, "tools", "agent")),
        blocks=blocks,
        tags=fields.strings(fields.need_list(body, "tags", "agent")),
        tool_rules=tuple(fields.as_object(rule, "tool rule") for rule in rules),
        description=fields.opt_str(body, "description"),
        last_stop_reason=fields.opt_str(body, "last_stop_reason"),
    )


def parse_tool(source: object) -> ToolView:
    body = fields.as_object(source, "tool")
    tags = fields.strings(fields.opt_list(body.get("tags")))
    tool_type = fields.need_str(body, "tool_type", "tool")
    # A custom tool or a built-in that took the row over keeps the MCP server's marks on it.
    is_mcp = tool_type == "external_mcp"
    owner = fields.opt_object(fields.opt_object(body.get("metadata_")).get("mcp")) if is_mcp else {}
    tag = next((tag for tag in tags if is_mcp and tag.startswith(MCP_TAG_PREFIX)), None)
    named = fields.opt_str(owner, "server_name")
    limit = body.get("return_char_limit")
    return ToolView(
        id=fields.need_str(body, "id", "tool"),
        name=fields.need_str(body, "name", "tool"),
        tool_type=tool_type,
        description=fields.opt_str(body, "description") or "",
        json_schema=fields.opt_object(body.get("json_schema")),
        tags=tags,
        # The metadata are rewritten with the owner; an old row may have the tag alone.
        mcp_server=named or (tag and tag.removeprefix(MCP_TAG_PREFIX)),
        mcp_server_id=fields.opt_str(owner, "server_id"),
        requires_approval=body.get("default_requires_approval") is True,
        return_char_limit=limit if isinstance(limit, int) else RETURN_CHAR_LIMIT,
        source_code=fields.opt_str(body, "source_code") or "",
    )


def parse_block(source: object) -> BlockView:
    body = fields.as_object(source, "block")
    return BlockView(
        id=fields.need_str(body, "id", "block"),
        label=fields.need_str(body, "label", "block"),
        value=fields.need_str(body, "value", "block"),
        limit=fields.need_int(body, "limit", "block"),
        read_only=bool(body.get("read_only")),
        description=fields.opt_str(body, "description") or "",
    )


def parse_mcp_server(source: object) -> McpServerView:
    body = fields.as_object(source, "MCP server")
    token = fields.opt_str(body, "auth_token")
    return McpServerView(
        id=fields.need_str(body, "id", "MCP server"),
        name=fields.need_str(body, "server_name", "MCP server"),
        server_type=fields.need_str(body, "mcp_server_type", "MCP server"),
        url=fields.opt_str(body, "server_url"),
        token=token.removeprefix(BEARER) if token else None,
    )


def parse_model(source: object) -> ModelView:
    body = fields.as_object(source, "model")
    window = fields.need_int(body, "context_window", "model")
    largest = body.get("max_context_window")
    return ModelView(
        handle=fields.need_str(body, "handle", "model"),
        name=fields.need_str(body, "name", "model"),
        provider=fields.opt_str(body, "provider_name") or "",
        context_window=window,
        max_context_window=largest if isinstance(largest, int) else window,
    )


def parse_tool_run(source: object) -> ToolRun:
    body = fields.as_object(source, "tool run")
    returned = body.get("func_return")
    return ToolRun(
        succeeded=fields.need_str(body, "status", "tool run") == "success",
        text="" if returned is None else str(returned),
    )


def parse_health(source: object) -> HealthView:
    body = fields.as_object(source, "health answer")
    return HealthView(
        status=fields.need_str(body, "status", "health answer"),
        version=fields.need_str(body, "version", "health answer"),
    )
