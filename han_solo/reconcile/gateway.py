"""What the reconciler needs of Letta: the part of ``LettaGateway`` it uses, as a protocol.

So that ``observe`` and ``apply`` run against the in-memory Letta of the tests as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..letta.views import AgentView, BlockView, McpServerView, ModelView, ToolView


class Gateway(Protocol):
    """Letta, as far as a sync is concerned. Nothing here deletes but canaries of ours."""

    @property
    def base_url(self) -> str: ...

    async def fetch_models(self) -> tuple[ModelView, ...]: ...
    async def fetch_agent(self, agent_id: str) -> AgentView: ...
    async def find_agents(self, name: str) -> tuple[AgentView, ...]: ...
    async def create_agent(
        self,
        *,
        name: str,
        model: str,
        system: str | None = None,
        description: str | None = None,
        timezone: str | None = None,
        tags: Sequence[str] = (),
    ) -> AgentView: ...

    async def fetch_tools(self) -> tuple[ToolView, ...]: ...
    async def fetch_mcp_servers(self) -> tuple[McpServerView, ...]: ...
    async def register_mcp_server(
        self, name: str, url: str, token: str | None
    ) -> McpServerView: ...
    async def update_mcp_server(
        self, name: str, *, url: str, token: str | None
    ) -> McpServerView: ...
    async def register_tool(self, server_name: str, tool_name: str) -> ToolView: ...
    async def attach_tool(self, agent_id: str, tool_id: str) -> None: ...
    async def detach_tool(self, agent_id: str, tool_id: str) -> None: ...

    async def create_block(
        self,
        label: str,
        value: str,
        *,
        limit: int,
        description: str = "",
        read_only: bool = False,
    ) -> BlockView: ...
    async def attach_block(self, agent_id: str, block_id: str) -> None: ...
    async def patch_block(
        self,
        block_id: str,
        *,
        limit: int | None = None,
        description: str | None = None,
        read_only: bool | None = None,
    ) -> BlockView: ...

    async def patch_tool_ids(self, agent_id: str, tool_ids: Sequence[str]) -> AgentView: ...
    async def patch_llm_config(
        self, agent_id: str, llm_config: Mapping[str, object]
    ) -> AgentView: ...
    async def patch_tool_rules(
        self, agent_id: str, tool_rules: Sequence[Mapping[str, object]]
    ) -> AgentView: ...
    async def patch_system(self, agent_id: str, system: str) -> AgentView: ...
    async def patch_name(self, agent_id: str, name: str) -> AgentView: ...

    async def find_canaries(self, owner_id: str) -> tuple[str, ...]: ...
    async def end_canary(self, canary_id: str) -> None: ...
