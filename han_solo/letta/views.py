"""What Letta says, as frozen values: agents, tools, blocks, MCP servers, models.

Parsed from the JSON of the answers and not from the SDK's classes: those rename fields of the
``llm_config``, guess at unions and drop what they do not know, while a config that is written back
must carry every field. Unknown fields are ignored here; one that is missing and needed is an error
that names it, since a half-read agent would look like drift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

from han_solo.errors import LettaRefused

Json = Mapping[str, object]

MCP_TAG_PREFIX: Final = "mcp:"
"""Letta tags a tool of an MCP server with ``mcp:<server>``; its metadata says the same."""

BEARER: Final = "Bearer "

T = TypeVar("T")

_HINT: Final = "Only Letta 0.16.8 is supported: run han-solo doctor."


@dataclass(frozen=True, slots=True)
class ToolView:
    """One tool of the organisation.

    ``tool_type`` is Letta's word: ``external_mcp``, ``custom``, ``letta_core``,
    ``letta_memory_core`` and others; ``mcp_server`` is the name of the server that owns an
    ``external_mcp`` tool. ``json_schema`` holds name, description and parameters.
    """

    id: str
    name: str
    tool_type: str
    description: str
    json_schema: Json
    tags: tuple[str, ...] = ()
    mcp_server: str | None = None
    mcp_server_id: str | None = None

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
class HealthView:
    """What ``/v1/health/`` says."""

    status: str
    version: str


def parse_agent(source: object) -> AgentView:
    body = as_object(source, "agent")
    blocks = tuple(parse_block(block) for block in need_list(body, "blocks", "agent"))
    return AgentView(
        id=need_str(body, "id", "agent"),
        name=need_str(body, "name", "agent"),
        agent_type=need_str(body, "agent_type", "agent"),
        system=opt_str(body, "system") or "",
        llm_config=as_object(need(body, "llm_config", "agent"), "agent's llm_config"),
        embedding=opt_str(body, "embedding"),
        tools=tuple(parse_tool(tool) for tool in need_list(body, "tools", "agent")),
        blocks=blocks,
        tags=_strings(need_list(body, "tags", "agent")),
        tool_rules=tuple(as_object(rule, "tool rule") for rule in _list(body.get("tool_rules"))),
        description=opt_str(body, "description"),
        last_stop_reason=opt_str(body, "last_stop_reason"),
    )


def parse_tool(source: object) -> ToolView:
    body = as_object(source, "tool")
    tags = _strings(_list(body.get("tags")))
    owner = _object(_object(body.get("metadata_")).get("mcp"))
    tag = next((tag for tag in tags if tag.startswith(MCP_TAG_PREFIX)), None)
    return ToolView(
        id=need_str(body, "id", "tool"),
        name=need_str(body, "name", "tool"),
        tool_type=need_str(body, "tool_type", "tool"),
        description=opt_str(body, "description") or "",
        json_schema=_object(body.get("json_schema")),
        tags=tags,
        # The metadata are rewritten with the owner; an old row may have the tag alone.
        mcp_server=opt_str(owner, "server_name") or (tag and tag.removeprefix(MCP_TAG_PREFIX)),
        mcp_server_id=opt_str(owner, "server_id"),
    )


def parse_block(source: object) -> BlockView:
    body = as_object(source, "block")
    return BlockView(
        id=need_str(body, "id", "block"),
        label=need_str(body, "label", "block"),
        value=need_str(body, "value", "block"),
        limit=need_int(body, "limit", "block"),
        read_only=bool(body.get("read_only")),
        description=opt_str(body, "description") or "",
    )


def parse_mcp_server(source: object) -> McpServerView:
    body = as_object(source, "MCP server")
    token = opt_str(body, "auth_token")
    return McpServerView(
        id=need_str(body, "id", "MCP server"),
        name=need_str(body, "server_name", "MCP server"),
        server_type=need_str(body, "mcp_server_type", "MCP server"),
        url=opt_str(body, "server_url"),
        token=token.removeprefix(BEARER) if token else None,
    )


def parse_model(source: object) -> ModelView:
    body = as_object(source, "model")
    window = need_int(body, "context_window", "model")
    largest = body.get("max_context_window")
    return ModelView(
        handle=need_str(body, "handle", "model"),
        name=need_str(body, "name", "model"),
        provider=opt_str(body, "provider_name") or opt_str(body, "provider_type") or "",
        context_window=window,
        max_context_window=largest if isinstance(largest, int) else window,
    )


def parse_health(source: object) -> HealthView:
    body = as_object(source, "health answer")
    return HealthView(
        status=need_str(body, "status", "health answer"),
        version=need_str(body, "version", "health answer"),
    )


def as_object(source: object, what: str) -> Json:
    """Return the JSON object.

    Raises:
        LettaRefused: when it is something else.
    """
    if isinstance(source, Mapping):
        return cast("Json", source)
    raise LettaRefused(
        f"Letta's answer has a {type(source).__name__} where the {what} should be.",
        hint=_HINT,
    )


def as_list(source: object, what: str) -> Sequence[object]:
    """Return the JSON list.

    Raises:
        LettaRefused: when it is something else.
    """
    if isinstance(source, list):
        return source
    raise LettaRefused(
        f"Letta's answer has a {type(source).__name__} where the list of {what} should be.",
        hint=_HINT,
    )


def need(body: Json, name: str, what: str) -> object:
    """Return a field that the answer must have."""
    value = body.get(name)
    if value is None:
        raise LettaRefused(
            f"Letta's {what} {body.get('id', '')!s} has no {name!r}.".replace("  ", " "),
            hint=_HINT,
        )
    return value


def need_str(body: Json, name: str, what: str) -> str:
    return _of_type(body, name, what, str)


def need_int(body: Json, name: str, what: str) -> int:
    return _of_type(body, name, what, int)


def need_list(body: Json, name: str, what: str) -> Sequence[object]:
    value: list[object] = _of_type(body, name, what, list)
    return value


def _of_type(body: Json, name: str, what: str, expected: type[T]) -> T:
    value = need(body, name, what)
    if not isinstance(value, expected):
        raise LettaRefused(
            f"Letta's {what} has a {type(value).__name__} as {name!r}.",
            hint=_HINT,
        )
    return value


def opt_str(body: Json, name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) and value else None


def _object(source: object) -> Json:
    return cast("Json", source) if isinstance(source, Mapping) else {}


def _list(source: object) -> Sequence[object]:
    return source if isinstance(source, list) else ()


def _strings(values: Sequence[object]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))
