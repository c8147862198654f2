"""The Letta gateway: the only way to Letta, with its traps behind it.

Who calls: the reconciler, verified block writes, status and doctor; nobody else speaks to Letta.

What is not here is left out on purpose: nothing deletes a tool, a block, an agent or an MCP server,
nothing asks Letta to refresh an MCP server (that hard-deletes what the bridge does not list at that
moment), and no method sends ``llm_config`` and ``tool_ids`` together: ``_patch_agent`` has room for
one field. Only reads are tried again. Errors are those of ``han_solo.errors``; an agent is said to
be gone only after a second 404 from a server that is healthy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, Self, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx

from han_solo.errors import AgentGone, LettaNotFound, LettaRefused, UsageError

from . import fields, mcp, paging, runs, text, turns, views
from .floor import Floor
from .link import Link

if TYPE_CHECKING:
    from han_solo.clock import Clock

INCLUDE: Final = ("agent.tools", "agent.blocks", "agent.tags")
"""All three, always: without them the SDK's read shows no tools; naming one empties the rest."""

AGENT_TYPE: Final = "letta_v1_agent"
"""Letta's default, which answers in plain text; ``memgpt_v2_agent`` answers through a tool."""

T = TypeVar("T")


class LettaGateway:
    """One Letta server. Safe to share by tasks of one event loop."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @classmethod
    def connect(
        cls,
        base_url: str,
        password: str | None,
        *,
        timeout_s: float = 30.0,
        message_timeout_s: float = 600.0,
        clock: Clock | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> Self:
        """Make a gateway; nothing is sent before the first call.

        Args:
            base_url: the server's URL, without ``/v1``.
            password: the server's password, or None where it asks for none.
            timeout_s: seconds for one call that is not a message.
            message_timeout_s: seconds for one turn.
            clock: the clock that waits between tries.
            transport: replaces the network, in tests.

        Raises:
            SettingsError: when the URL is none, or has a password in it.
        """
        return cls(
            Link(
                base_url,
                password,
                timeout_s=timeout_s,
                message_timeout_s=message_timeout_s,
                clock=clock,
                transport=transport,
            )
        )

    @property
    def base_url(self) -> str:
        return self._link.base_url

    async def close(self) -> None:
        await self._link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    # The server

    async def health(self) -> views.HealthView:
        """Ask whether the server is up; it answers without a password."""
        body = await self._link.read(
            "asking for its health", lambda letta: letta.with_raw_response.health()
        )
        return views.parse_health(body)

    async def fetch_models(self) -> tuple[views.ModelView, ...]:
        """Fetch the models that this server can use, by handle."""
        body = await self._link.read(
            "listing the models", lambda letta: letta.models.with_raw_response.list()
        )
        return tuple(views.parse_model(model) for model in fields.as_list(body, "models"))

    async def fetch_model_config(self, handle: str) -> Mapping[str, object] | None:
        """Fetch Letta's own configuration of a model, under the names of ``llm_config``.

        Returns None when this server has no such model.
        """
        body = await self._link.read(
            "listing the models", lambda letta: letta.models.with_raw_response.list()
        )
        models = (fields.as_object(model, "model") for model in fields.as_list(body, "models"))
        return next((model for model in models if model.get("handle") == handle), None)

    async def fetch_embedding_handles(self) -> tuple[str, ...]:
        """Fetch the handles of the embedding models that this server can use."""
        body = await self._link.read(
            "listing the embedding models",
            lambda letta: letta.models.embeddings.with_raw_response.list(),
        )
        return tuple(
            fields.need_str(fields.as_object(model, "embedding model"), "handle", "embedding model")
            for model in fields.as_list(body, "embedding models")
        )

    # Agents

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
        doing = f"looking for agents named {name!r}"

        async def fetch_page(rows: int, after: str | None) -> object:
            params = {"name": name, "limit": rows, "include": [*INCLUDE]}
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
                    options={"params": {"name": name}},
                ),
            )

        found = await paging.fetch_all("agent", fetch_page, fetch_count)
        return tuple(view for view in map(views.parse_agent, found) if view.name == name)

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

    # Tools and MCP servers

    async def fetch_tools(self) -> tuple[views.ToolView, ...]:
        """Fetch every tool of the organisation, or fail: a part of them is never returned.

        This read writes in Letta: when one of its built-in tools is missing from a page, it makes
        all of them anew, a deleted one under a new id.

        Raises:
            LettaUnavailable: when the pages do not add up to Letta's own count.
        """

        async def fetch_page(rows: int, after: str | None) -> object:
            params = {"limit": rows} | ({"after": after} if after else {})
            return await self._link.read(
                "listing the tools",
                lambda letta: letta.get(
                    "/v1/tools/", cast_to=httpx.Response, options={"params": params}
                ),
            )

        async def fetch_count() -> object:
            return await self._link.read(
                "counting the tools",
                lambda letta: letta.get("/v1/tools/count", cast_to=httpx.Response),
            )

        found = await paging.fetch_all("tool", fetch_page, fetch_count)
        return tuple(views.parse_tool(tool) for tool in found)

    async def attach_tool(self, agent_id: str, tool_id: str) -> None:
        """Attach a tool; done already is no error. Not read back: ``fetch_agent`` shows all."""
        await self._of_agent(
            agent_id,
            self._link.write(
                f"attaching {tool_id} to the agent {agent_id}",
                lambda letta: letta.agents.tools.with_raw_response.attach(
                    tool_id, agent_id=agent_id
                ),
            ),
        )

    async def detach_tool(self, agent_id: str, tool_id: str) -> None:
        """Detach a tool, which stays in Letta; done already is no error. Not read back."""
        await self._of_agent(
            agent_id,
            self._link.write(
                f"detaching {tool_id} from the agent {agent_id}",
                lambda letta: letta.agents.tools.with_raw_response.detach(
                    tool_id, agent_id=agent_id
                ),
            ),
        )

    async def run_tool(
        self, agent_id: str, tool_name: str, arguments: Mapping[str, object]
    ) -> views.ToolRun:
        """Run an attached tool once, as the agent would and without its model.

        Letta calls the MCP server with the agent's id, and keeps the text of an error to itself.
        """
        path = f"/v1/agents/{quote(agent_id, safe='')}/tools/{quote(tool_name, safe='')}/run"
        answer = await self._post(f"running the tool {tool_name}", path, {"args": dict(arguments)})
        return views.parse_tool_run(answer)

    async def fetch_mcp_servers(self) -> tuple[views.McpServerView, ...]:
        """Fetch the registered MCP servers.

        Raises:
            BridgeUrlRefused: when one of them has a private address, which hides them all.
        """
        return await mcp.fetch_servers(self._link)

    async def register_mcp_server(
        self, name: str, url: str, token: str | None
    ) -> views.McpServerView:
        """Register an MCP server, and with it every tool that it lists at this moment.

        Letta takes over tools of those names from whoever owns them, attaches none, waits for the
        listing (70 tools: 2 s), and answers 200 with no tools at all when the server is down or
        refuses the token: look at ``fetch_tools`` afterwards.

        Raises:
            BridgeUrlRefused: for a private address.
            LettaConflict: when a server of that name exists.
        """
        return await mcp.register(self._link, name, url, token)

    async def update_mcp_server(
        self, name: str, *, url: str, token: str | None
    ) -> views.McpServerView:
        """Change an MCP server's URL and token; its tools are left as they are. Read back.

        Args:
            name: the server's name, by which Letta finds it even while its list is an error.
            url: the URL to store.
            token: the token to store; None leaves the one that is there.

        Raises:
            WriteNotVerified: when the list does not show the new values.
        """
        return await mcp.update(self._link, name, url, token)

    async def register_tool(self, server_name: str, tool_name: str) -> views.ToolView:
        """Add or update one tool of an MCP server; id and attachments are kept.

        Letta asks the server for its list first, so the server must answer now.

        Raises:
            LettaUnavailable: when the server does not list it, refuses Letta or is away.
        """
        return await mcp.register_tool(self._link, server_name, tool_name)

    # Blocks

    async def fetch_block(self, block_id: str) -> views.BlockView:
        body = await self._link.read(
            f"reading the block {block_id}",
            lambda letta: letta.blocks.with_raw_response.retrieve(block_id),
        )
        return views.parse_block(body)

    async def create_block(
        self,
        label: str,
        value: str,
        *,
        limit: int,
        description: str = "",
        read_only: bool = False,
    ) -> views.BlockView:
        """Create a block, attached to nothing yet. Not tried again: Letta makes a second one."""
        text.require_storable(value, f"The block {label!r}")
        body = {
            "label": label,
            "value": value,
            "limit": limit,
            "description": description,
            "read_only": read_only,
        }
        return views.parse_block(
            await self._post(f"creating the block {label!r}", "/v1/blocks/", body)
        )

    async def write_block(self, block_id: str, value: str) -> views.BlockView:
        """Replace a block's value, once, unverified; ``Blocks.write`` is the one that verifies.

        Raises:
            LettaConflict: when another write of the block ran at the same time.
            UsageError: a character that Letta can not store.
        """
        text.require_storable(value, f"The value for the block {block_id}")
        return await self._patch_block(block_id, {"value": value})

    async def patch_block(
        self,
        block_id: str,
        *,
        limit: int | None = None,
        description: str | None = None,
        read_only: bool | None = None,
    ) -> views.BlockView:
        """Change what a block is, never its value; read back."""
        wanted = {"limit": limit, "description": description, "read_only": read_only}
        await self._patch_block(
            block_id, {key: value for key, value in wanted.items() if value is not None}
        )
        return await self.fetch_block(block_id)

    async def _patch_block(self, block_id: str, body: Mapping[str, object]) -> views.BlockView:
        return views.parse_block(
            await self._patch(
                f"changing the block {block_id}", f"/v1/blocks/{quote(block_id, safe='')}", body
            )
        )

    async def attach_block(self, agent_id: str, block_id: str) -> None:
        """Attach a block. Not read back: ``fetch_agent`` shows all.

        Raises:
            LettaConflict: when the agent has a block of that label.
        """
        doing = f"attaching the block {block_id} to the agent {agent_id}"
        await self._of_agent(
            agent_id,
            self._link.write(
                doing,
                lambda letta: letta.agents.blocks.with_raw_response.attach(
                    block_id, agent_id=agent_id
                ),
            ),
        )

    # Messages

    async def send_message(
        self, floor: Floor, message: str, *, max_steps: int | None = None
    ) -> turns.Turn:
        """Send one message as the user and wait for the whole turn.

        Sent once, whatever happens: after a timeout the turn may still run, and a second message
        would make the agent hear it twice. A turn may be silent; ``Turn`` keeps what tells why.

        Args:
            floor: the right to do so, held by the caller; it names the agent.
            message: what the user says.
            max_steps: calls of the model, at most; at 0 Letta would drop the message and say 200.

        Raises:
            AgentBusy: the floor is no longer held; nothing was sent.
            ApprovalPending: the agent waits for an approval and took no message.
            ModelFailed: the model failed. Whether the message was kept, its run tells.
        """
        text.require_storable(message, "The message")
        if max_steps is not None and max_steps < 1:
            raise UsageError(
                f"max_steps is {max_steps}; a turn takes one step at least.",
                hint="Give 1 or more, or leave it out for Letta's own 50.",
            )
        floor.require_held()
        answer = await self._of_agent(
            floor.agent_id,
            self._link.message(
                f"waiting for a turn of the agent {floor.agent_id}",
                f"/v1/agents/{quote(floor.agent_id, safe='')}/messages",
                runs.build_message(message, floor.turn_id, max_steps),
            ),
        )
        return turns.parse_turn(answer)

    async def fetch_active_runs(self, agent_id: str) -> tuple[runs.RunView, ...]:
        """Fetch the runs of the agent that are not over, whoever began them.

        One that Letta was killed in stays among them for ever.
        """
        return await runs.fetch_runs(self._link, agent_id, active=True)

    async def find_runs(
        self, agent_id: str, turn_ids: Collection[UUID]
    ) -> Mapping[UUID, runs.RunView]:
        """Find the runs of turns that were sent from here; one that Letta never took is left out.

        A server that was frozen when a message was sent may still take it later.
        """
        found = await runs.fetch_runs(self._link, agent_id, active=False)
        return {run.turn_id: run for run in found if run.turn_id in turn_ids and run.turn_id}

    async def fetch_kept(self, run: runs.RunView) -> runs.KeptTurn:
        """Fetch what Letta kept of a run: the turn, as its answer would have been."""
        return await runs.fetch_kept(self._link, run)

    async def fetch_last_activity(self, run: runs.RunView) -> datetime:
        """Return when the run last did something."""
        return await runs.fetch_last_activity(self._link, run)

    async def _post(
        self,
        doing: str,
        path: str,
        body: Mapping[str, object],
        *,
        params: Mapping[str, object] | None = None,
    ) -> object:
        return await self._link.write(
            doing,
            lambda letta: letta.post(
                path, cast_to=httpx.Response, body=body, options={"params": params or {}}
            ),
        )

    async def _patch(self, doing: str, path: str, body: Mapping[str, object]) -> object:
        return await self._link.write(
            doing, lambda letta: letta.patch(path, cast_to=httpx.Response, body=body)
        )
