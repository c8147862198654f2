"""A Letta in memory that behaves as 0.16.8 was measured to, traps included.

Names of tools are unique in the organisation and the last writer takes a name over, keeping the
row's id; registering a server registers what its bridge lists, attaches nothing, and answers well
with no tools at all when the bridge is away or refuses the token; attaching is idempotent. What
tests do to it by hand (``delete_tool`` and so on) stands apart from what the gateway offers.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from han_solo.errors import (
    AgentGone,
    LettaConflict,
    LettaNotFound,
    LettaUnavailable,
)
from han_solo.letta import schemas
from han_solo.letta.views import AgentView, BlockView, McpServerView, ModelView, ToolView
from han_solo.registry import ListedTool

BASE_CONFIG = {
    "handle": "openai-proxy/rehearsal",
    "model": "rehearsal",
    "model_endpoint_type": "openai",
    "context_window": 128_000,
    "temperature": 1.0,
    "max_tokens": 16_384,
    "max_reasoning_tokens": 0,
    "enable_reasoner": True,
    "parallel_tool_calls": False,
}


@dataclass
class Bridge:
    """What answers at a URL: its list, and the token it wants."""

    tools: tuple[ListedTool, ...]
    token: str | None = None
    is_up: bool = True


@dataclass
class FakeLetta:
    """The server and the gateway to it in one."""

    base_url: str = "http://letta.test"
    bridges: dict[str, Bridge] = field(default_factory=dict)
    tools: dict[str, ToolView] = field(default_factory=dict)
    servers: dict[str, McpServerView] = field(default_factory=dict)
    blocks: dict[str, BlockView] = field(default_factory=dict)
    agents: dict[str, AgentView] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    fail: dict[str, Exception] = field(default_factory=dict)
    lose: set[str] = field(default_factory=set)
    _ids: itertools.count[int] = field(default_factory=itertools.count)

    # By hand

    def new_id(self, kind: str) -> str:
        return f"{kind}-{next(self._ids):06}"

    def add_tool(self, name: str, tool_type: str = "custom", server: str | None = None) -> str:
        """Put a tool of somebody into the organisation; the last writer wins."""
        return self._upsert(
            ToolView(
                id="",
                name=name,
                tool_type="external_mcp" if server else tool_type,
                description=name,
                json_schema={"name": name, "description": name, "parameters": {}},
                tags=(f"mcp:{server}",) if server else (),
                mcp_server=server,
            )
        ).id

    def add_server(self, name: str, url: str, token: str | None = None) -> str:
        row = McpServerView(self.new_id("mcp_server"), name, "streamable_http", url, token)
        self.servers[name] = row
        return row.id

    def add_agent(self, name: str, **fields: object) -> str:
        agent = AgentView(
            id=self.new_id("agent"),
            name=name,
            agent_type="letta_v1_agent",
            system="",
            llm_config=dict(BASE_CONFIG),
            embedding=None,
            tools=(),
            blocks=(),
            tags=(),
            tool_rules=(),
            description=None,
            last_stop_reason=None,
        )
        self.agents[agent.id] = dataclasses.replace(agent, **fields)
        return agent.id

    def add_block(self, agent_id: str, label: str, value: str = "", limit: int = 100_000) -> str:
        block = BlockView(self.new_id("block"), label, value, limit, False, "")
        self.blocks[block.id] = block
        self._change(agent_id, blocks=(*self.agents[agent_id].blocks, block))
        return block.id

    def delete_tool(self, name: str) -> None:
        """What a hand or a refresh does: gone, and detached everywhere."""
        gone = self.tools.pop(name)
        for agent_id, agent in self.agents.items():
            self._change(agent_id, tools=tuple(t for t in agent.tools if t.id != gone.id))

    def attach_by_hand(self, agent_id: str, name: str) -> None:
        self._change(agent_id, tools=(*self.agents[agent_id].tools, self.tools[name]))

    def detach_by_hand(self, agent_id: str, name: str) -> None:
        kept = tuple(tool for tool in self.agents[agent_id].tools if tool.name != name)
        self._change(agent_id, tools=kept)

    # The gateway

    async def fetch_models(self) -> tuple[ModelView, ...]:
        return (ModelView("openai-proxy/rehearsal", "rehearsal", "openai-proxy", 30_000, 128_000),)

    async def fetch_agent(self, agent_id: str) -> AgentView:
        self._call("fetch_agent", agent_id)
        return self._agent(agent_id)

    async def find_agents(self, name: str) -> tuple[AgentView, ...]:
        self._call("find_agents", name)
        return tuple(agent for agent in self.agents.values() if agent.name == name)

    async def create_agent(
        self,
        *,
        name: str,
        model: str,
        system: str | None = None,
        description: str | None = None,
        timezone: str | None = None,
        tags: Sequence[str] = (),
    ) -> AgentView:
        self._call("create_agent", name)
        agent_id = self.add_agent(
            name,
            system=system or "",
            tags=tuple(tags),
            llm_config={**BASE_CONFIG, "handle": model, "enable_reasoner": False},
        )
        return self.agents[agent_id]

    async def fetch_tools(self) -> tuple[ToolView, ...]:
        self._call("fetch_tools", "")
        return tuple(self.tools.values())

    async def fetch_mcp_servers(self) -> tuple[McpServerView, ...]:
        self._call("fetch_mcp_servers", "")
        return tuple(self.servers.values())

    async def register_mcp_server(self, name: str, url: str, token: str | None) -> McpServerView:
        self._call("register_mcp_server", name)
        if name in self.servers:
            raise LettaConflict(f"an MCP server named {name!r} is there")
        self.add_server(name, url, token)
        for tool in self._ask_bridge(url, token) or ():
            self._register(name, tool)
        return self.servers[name]

    async def update_mcp_server(self, name: str, *, url: str, token: str | None) -> McpServerView:
        self._call("update_mcp_server", name)
        row = self.servers[name]
        self.servers[name] = dataclasses.replace(row, url=url, token=token or row.token)
        return self.servers[name]

    async def register_tool(self, server_name: str, tool_name: str) -> ToolView:
        self._call("register_tool", tool_name)
        row = self.servers[server_name]
        assert row.url
        listed = self._ask_bridge(row.url, row.token)
        found = next((tool for tool in listed or () if tool.name == tool_name), None)
        if found is None:
            raise LettaUnavailable(f"{tool_name} is not listed", status_code=500)
        if tool_name in self.lose:
            return self.tools[tool_name]
        return self._register(server_name, found)

    async def attach_tool(self, agent_id: str, tool_id: str) -> None:
        self._call("attach_tool", tool_id)
        agent = self._agent(agent_id)
        tool = next((tool for tool in self.tools.values() if tool.id == tool_id), None)
        if tool is None:
            raise LettaNotFound(f"no tool {tool_id}", status_code=404)
        if tool.name not in self.lose and all(t.id != tool_id for t in agent.tools):
            self._change(agent_id, tools=(*agent.tools, tool))

    async def detach_tool(self, agent_id: str, tool_id: str) -> None:
        self._call("detach_tool", tool_id)
        kept = tuple(tool for tool in self._agent(agent_id).tools if tool.id != tool_id)
        self._change(agent_id, tools=kept)

    async def create_block(
        self,
        label: str,
        value: str,
        *,
        limit: int,
        description: str = "",
        read_only: bool = False,
    ) -> BlockView:
        self._call("create_block", label)
        block = BlockView(self.new_id("block"), label, value, limit, read_only, description)
        self.blocks[block.id] = block
        return block

    async def attach_block(self, agent_id: str, block_id: str) -> None:
        self._call("attach_block", block_id)
        agent = self._agent(agent_id)
        if block_id not in self.blocks:
            raise LettaNotFound(f"no block {block_id}", status_code=404)
        block = self.blocks[block_id]
        if agent.block(block.label):
            raise LettaConflict(f"{block.label} is there")
        self._change(agent_id, blocks=(*agent.blocks, block))

    async def patch_block(
        self,
        block_id: str,
        *,
        limit: int | None = None,
        description: str | None = None,
        read_only: bool | None = None,
    ) -> BlockView:
        self._call("patch_block", block_id)
        wanted = {"limit": limit, "description": description, "read_only": read_only}
        changes = {key: value for key, value in wanted.items() if value is not None}
        self.blocks[block_id] = dataclasses.replace(self.blocks[block_id], **changes)
        for agent_id, agent in self.agents.items():
            self._change(agent_id, blocks=tuple(self.blocks.get(b.id, b) for b in agent.blocks))
        return self.blocks[block_id]

    async def patch_llm_config(self, agent_id: str, llm_config: Mapping[str, object]) -> AgentView:
        self._call("patch_llm_config", agent_id)
        return self._change(agent_id, llm_config=dict(llm_config))

    async def patch_tool_rules(
        self, agent_id: str, tool_rules: Sequence[Mapping[str, object]]
    ) -> AgentView:
        self._call("patch_tool_rules", agent_id)
        return self._change(agent_id, tool_rules=tuple(dict(rule) for rule in tool_rules))

    async def patch_system(self, agent_id: str, system: str) -> AgentView:
        self._call("patch_system", agent_id)
        return self._change(agent_id, system=system)

    async def patch_tool_ids(self, agent_id: str, tool_ids: Sequence[str]) -> AgentView:
        self._call("patch_tool_ids", agent_id)
        by_id = {tool.id: tool for tool in self.tools.values()}
        return self._change(agent_id, tools=tuple(by_id[tool_id] for tool_id in tool_ids))

    async def find_canaries(self, owner_id: str) -> tuple[str, ...]:
        self._call("find_canaries", owner_id)
        return ()

    async def end_canary(self, canary_id: str) -> None:
        self._call("end_canary", canary_id)

    async def patch_name(self, agent_id: str, name: str) -> AgentView:
        self._call("patch_name", agent_id)
        return self._change(agent_id, name=name)

    # Inside

    def _call(self, name: str, target: str) -> None:
        self.calls.append(name)
        for key in (name, f"{name}:{target}"):
            if key in self.fail:
                raise self.fail[key]

    def _agent(self, agent_id: str) -> AgentView:
        if agent_id not in self.agents:
            raise AgentGone(f"no agent {agent_id}", status_code=404)
        return self.agents[agent_id]

    def _change(self, agent_id: str, **fields: object) -> AgentView:
        self.agents[agent_id] = dataclasses.replace(self.agents[agent_id], **fields)
        return self.agents[agent_id]

    def _ask_bridge(self, url: str, token: str | None) -> tuple[ListedTool, ...] | None:
        bridge = self.bridges.get(url)
        if bridge is None or not bridge.is_up or bridge.token not in {None, token}:
            return None
        return bridge.tools

    def _register(self, server: str, tool: ListedTool) -> ToolView:
        stored = schemas.expected_json_schema(tool.name, tool.description, tool.input_schema)
        return self._upsert(
            ToolView(
                id="",
                name=tool.name,
                tool_type="external_mcp",
                description=tool.description,
                json_schema={**stored, "mcp:SCHEMA_STATUS": "STRICT_COMPLIANT"},
                tags=(f"mcp:{server}",),
                mcp_server=server,
            )
        )

    def _upsert(self, tool: ToolView) -> ToolView:
        old = self.tools.get(tool.name)
        row = dataclasses.replace(tool, id=old.id if old else self.new_id("tool"))
        self.tools[tool.name] = row
        for agent_id, agent in self.agents.items():
            self._change(agent_id, tools=tuple(row if t.id == row.id else t for t in agent.tools))
        return row
