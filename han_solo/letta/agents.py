"""The gateway's part for agents: read whole, created bare, changed one field at a time.

An agent is said to be gone only after a second 404 from a server that is healthy. No method sends
``llm_config`` and ``tool_ids`` together: ``_patch_agent`` has room for one field.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import quote

import httpx

from han_solo.errors import AgentGone, LettaNotFound, LettaRefused

from . import paging, text, views
from .server import ServerCalls

INCLUDE: Final = ("agent.tools", "agent.blocks", "agent.tags")
"""All three, always: without them the SDK's read shows no tools; naming one empties the rest."""

AGENT_TYPE: Final = "letta_v1_agent"
"""Letta's default, which answers in plain text; ``memgpt_v2_agent`` answers through a tool."""

T = TypeVar("T")


class AgentCalls(ServerCalls):
    """Reads and changes agents; the base of the parts that do something to one."""

    async def fetch_agent(self, agent_id: str) -> views.AgentView:
        """Fetch an agent with all its tools, blocks and tags, in one read.

        Raises:
            AgentGone: a confirmed 404: the server is healthy, and says so twice.
        """
        doing = f"reading the agent {agent_id}"
        try:
            body = await self._read_agent(agent_id, doing)
        except LettaNotFound as first:
            await self.health()
            try:
                body = await self._read_agent(agent_id, doing)
            except LettaNotFound as second:
                raise AgentGone(
                    f"Letta at {self.base_url} has no agent {agent_id}.",
                    hint="Set HAN_SOLO_AGENT_ID to its id as Letta shows it; to begin anew, give "
                    "the spec another name.",
                    status_code=second.status_code,
                ) from first
        return views.parse_agent(body)

    async def _read_agent(self, agent_id: str, doing: str) -> object:
        return await self._link.read(
            doing,
            lambda letta: letta.agents.with_raw_response.retrieve(agent_id, include=[*INCLUDE]),
        )

    async def find_agents(self, name: str) -> tuple[views.AgentView, ...]:
        """Find every agent of exactly that name; Letta allows several."""
        found = await self._list_agents(f"looking for agents named {name!r}", {"name": name})
        return tuple(view for view in found if view.name == name)

    async def list_agents(self) -> tuple[views.AgentView, ...]:
        """List every agent there is."""
        return await self._list_agents("listing the agents", {})

    async def _list_agents(
        self, doing: str, only: Mapping[str, str]
    ) -> tuple[views.AgentView, ...]:
        async def fetch_page(rows: int, after: str | None) -> object:
            params: dict[str, object] = {**only, "limit": rows, "include": [*INCLUDE]}
            params |= {"after": after} if after else {}
            return await self._link.read(
                doing,
                lambda letta: letta.get(
                    "/v1/agents/",
                    cast_to=httpx.Response,
                    options={"params": params},
                ),
            )

        async def fetch_count() -> object:
            return await self._link.read(
                doing,
                lambda letta: letta.get(
                    "/v1/agents/count",
                    cast_to=httpx.Response,
                    options={"params": dict(only)},
                ),
            )

        found = await paging.fetch_all("agent", fetch_page, fetch_count)
        return tuple(map(views.parse_agent, found))

    async def create_agent(
        self,
        *,
        name: str,
        model: str,
        embedding: str | None = None,
        agent_type: str = AGENT_TYPE,
        system: str | None = None,
        description: str | None = None,
        timezone: str | None = None,
        block_ids: Sequence[str] = (),
        tool_ids: Sequence[str] = (),
        tags: Sequence[str] = (),
        tool_rules: Sequence[Mapping[str, object]] = (),
    ) -> views.AgentView:
        """Create an agent that holds what is named here and nothing of Letta's own.

        Letta would add its base tools, and those revert our block writes; so they and their rules
        are declined explicitly. Not tried again: Letta makes a second agent of the same name.
        """
        body: dict[str, object] = {
            "name": name,
            "model": model,
            "agent_type": agent_type,
            "block_ids": list(block_ids),
            "tool_ids": list(tool_ids),
            "tags": list(tags),
            "tool_rules": list(tool_rules),
            "include_base_tools": False,
            "include_base_tool_rules": False,
            "include_multi_agent_tools": False,
        }
        optional = {
            "embedding": embedding,
            "system": system,
            "description": description,
            "timezone": timezone,
        }
        body |= {key: value for key, value in optional.items() if value is not None}
        answer = await self._post(
            f"creating the agent {name!r}", "/v1/agents/", body, params={"include": [*INCLUDE]}
        )
        return views.parse_agent(answer)

    async def patch_llm_config(
        self, agent_id: str, llm_config: Mapping[str, object]
    ) -> views.AgentView:
        """Replace the whole model configuration, and nothing else; read back.

        Args:
            agent_id: the agent.
            llm_config: complete, as ``AgentView.llm_config`` with the changes in it. Letta loses
                every field that is missing.

        Raises:
            LettaRefused: when a field is missing that the agent has now.
        """
        now = await self.fetch_agent(agent_id)
        missing = sorted(now.llm_config.keys() - llm_config.keys())
        if missing:
            raise LettaRefused(
                f"The llm_config for {agent_id} lacks {', '.join(missing)}; Letta would lose them.",
                hint="Send the agent's present llm_config with the changes in it.",
            )
        return await self._patch_agent(agent_id, "llm_config", dict(llm_config))

    async def patch_tool_ids(self, agent_id: str, tool_ids: Sequence[str]) -> views.AgentView:
        """Replace the set of attached tools, and nothing else; read back."""
        return await self._patch_agent(agent_id, "tool_ids", list(tool_ids))

    async def patch_tool_rules(
        self, agent_id: str, tool_rules: Sequence[Mapping[str, object]]
    ) -> views.AgentView:
        """Replace the tool rules, and nothing else; read back."""
        return await self._patch_agent(agent_id, "tool_rules", [dict(rule) for rule in tool_rules])

    async def patch_system(self, agent_id: str, system: str) -> views.AgentView:
        """Replace the system prompt, and nothing else; read back."""
        text.require_storable(system, "The system prompt")
        return await self._patch_agent(agent_id, "system", system)

    async def patch_name(self, agent_id: str, name: str) -> views.AgentView:
        """Rename the agent, and nothing else; read back."""
        return await self._patch_agent(agent_id, "name", name)

    async def add_tags(self, agent_id: str, tags: Sequence[str]) -> views.AgentView:
        """Add tags to the agent's; those it has stay. Read back."""
        now = await self.fetch_agent(agent_id)
        missing = [tag for tag in dict.fromkeys(tags) if tag not in now.tags]
        if not missing:
            return now
        return await self._patch_agent(agent_id, "tags", [*now.tags, *missing])

    async def _patch_agent(self, agent_id: str, field: str, value: object) -> views.AgentView:
        # One field, by construction. The SDK's own method would rename fields of the llm_config.
        await self._of_agent(
            agent_id,
            self._patch(
                f"changing {field} of the agent {agent_id}",
                f"/v1/agents/{quote(agent_id, safe='')}",
                {field: value},
            ),
        )
        return await self.fetch_agent(agent_id)

    async def _of_agent(self, agent_id: str, call: Awaitable[T]) -> T:
        """Await a call about an agent; a 404 becomes ``AgentGone`` where that is so."""
        try:
            return await call
        except LettaNotFound:
            await self.fetch_agent(agent_id)
            raise
