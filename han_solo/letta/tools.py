"""The gateway's part for tools and the MCP servers they come from; ``mcp`` knows the latter's ways.

Nothing deletes a tool or a server, and nothing asks Letta to refresh a server: that hard-deletes
what the bridge does not list at that moment. Tools are registered one by one instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import httpx

from . import mcp, paging, views
from .agents import AgentCalls


class ToolCalls(AgentCalls):
    """Reads, attaches, detaches and registers tools."""

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
