"""The two states that are compared: desired (registry and spec) and observed (Letta, the bridge).

Both are frozen values without a connection behind them, so that ``diff`` is pure and can be tested
over generated states. Tools are known by name and compared by fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from .spec import AgentSpec, ToolRule

MCP_TYPE: Final = "external_mcp"
"""Letta's type of a tool that some MCP server listed."""


@dataclass(frozen=True, slots=True)
class DesiredTool:
    """A tool of the agent's set. ``fingerprint`` is what Letta must hold of it, as a hash."""

    name: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class DesiredServer:
    """The bridge, as an MCP server in Letta."""

    name: str
    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Desired:
    """What is to be: the agent's tools, by name in sorted order, and its spec."""

    server: DesiredServer
    tools: tuple[DesiredTool, ...]
    spec: AgentSpec

    def names(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self.tools)


@dataclass(frozen=True, slots=True)
class ObservedTool:
    """A tool of Letta's organisation. ``server`` owns it when it is an MCP server's.

    ``fingerprint`` is None where it is not compared: on what never was an MCP server's.
    """

    id: str
    name: str
    tool_type: str
    server: str | None = None
    fingerprint: str | None = None

    @property
    def is_builtin(self) -> bool:
        return self.tool_type.startswith("letta_")

    @property
    def lost_its_server(self) -> bool:
        """Say whether tag and metadata are both gone, so that Letta can run it for nobody."""
        return self.server is None and self.tool_type == MCP_TYPE

    def describe_owner(self) -> str:
        """Say whose it is, for a sentence."""
        if self.server is not None:
            return f"the MCP server {self.server!r}"
        if self.lost_its_server:
            return "an MCP server that is no longer named on it"
        return "Letta itself" if self.is_builtin else f"a {self.tool_type} tool"


@dataclass(frozen=True, slots=True)
class ObservedBlock:
    """A block on the agent; lengths and limits are in characters."""

    id: str
    label: str
    limit: int
    read_only: bool
    description: str
    length: int


@dataclass(frozen=True, slots=True)
class ObservedServer:
    """A registered MCP server."""

    id: str
    name: str
    url: str | None
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ObservedAgent:
    """The agent as Letta has it."""

    id: str
    name: str
    system: str = field(repr=False)
    llm_config: Mapping[str, object]
    tools: tuple[ObservedTool, ...]
    blocks: tuple[ObservedBlock, ...]
    tags: tuple[str, ...]
    tool_rules: tuple[ToolRule, ...]

    def block(self, label: str) -> ObservedBlock | None:
        return next((block for block in self.blocks if block.label == label), None)


@dataclass(frozen=True, slots=True)
class Listing:
    """What the bridge itself lists at this moment."""

    tools: tuple[DesiredTool, ...]


@dataclass(frozen=True, slots=True)
class NoListing:
    """The bridge gave no list; ``why`` and ``hint`` are sentences."""

    why: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Switched:
    """The last switch of the agent's model, done or under way; ``config`` is what it is given.

    ``spec_handle`` is what the spec named at that time.
    """

    handle: str
    spec_handle: str
    config: Mapping[str, object] = field(repr=False)
    at: datetime


@dataclass(frozen=True, slots=True)
class Known:
    """What we remember in Postgres and Letta can not tell.

    ``server_ids`` are the MCP servers we registered; ``blocks`` the ids of the agent's blocks by
    label, so that a block that was detached is attached again and not made anew and empty;
    ``switched`` tells a model that somebody switched to from one that was changed behind our back.
    """

    server_ids: frozenset[str] = frozenset()
    blocks: Mapping[str, str] = field(default_factory=dict)
    switched: Switched | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """What is, read whole.

    ``namesakes`` are the agents that bear the spec's name, read when the agent itself does not.
    """

    agent: ObservedAgent
    tools: tuple[ObservedTool, ...]
    servers: tuple[ObservedServer, ...]
    listing: Listing | NoListing
    known: Known = Known()
    namesakes: tuple[str, ...] = ()

    def named(self, name: str) -> tuple[ObservedTool, ...]:
        """Return the organisation's tools of that name; more than one is a fault."""
        return tuple(tool for tool in self.tools if tool.name == name)


Consent = Literal["prune", "detach_builtin_memory"]
"""What only happens when asked for: detaching what is not declared, or what undoes block writes."""
