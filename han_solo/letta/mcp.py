"""MCP servers in Letta: list, register, update, and their tools one by one.

Apart from ``gateway`` because each call here has a trap of its own: the list is one error when a
single row has a private address; the new update call loses the token and the old one does not; a
tool is registered by name, and every failure of the bridge comes back as a 5xx of Letta.
"""

from __future__ import annotations

import hashlib
from typing import Final
from urllib.parse import quote

import httpx

from han_solo.errors import (
    BridgeUrlRefused,
    LettaConflict,
    LettaNotFound,
    LettaRefused,
    LettaUnavailable,
    WriteNotVerified,
)

from . import faults, fields, views
from .link import Link

POISON_HINT: Final = (
    "One stored MCP server with a private address hides them all. " + faults.WAYS_ROUND
)


async def fetch_servers(link: Link) -> tuple[views.McpServerView, ...]:
    doing = "listing the MCP servers"
    try:
        body = await link.read(doing, lambda letta: letta.mcp_servers.with_raw_response.list())
    except BridgeUrlRefused as error:
        raise BridgeUrlRefused(
            error.message, hint=POISON_HINT, status_code=error.status_code
        ) from error
    return tuple(views.parse_mcp_server(server) for server in fields.as_list(body, "MCP servers"))


async def register(link: Link, name: str, url: str, token: str | None) -> views.McpServerView:
    if ":" in name:
        raise LettaRefused(
            f"{name!r} can not be the name of an MCP server: Letta separates with a colon.",
            hint="Set HAN_SOLO_BRIDGE_NAME to letters, digits, - and _.",
        )
    config: dict[str, object] = {"mcp_server_type": "streamable_http", "server_url": url}
    if token is not None:
        config |= {"auth_header": "Authorization", "auth_token": token}
    body = {"server_name": name, "config": config}
    try:
        answer = await link.write(
            f"registering the MCP server {name!r} at {url}",
            lambda letta: letta.post("/v1/mcp-servers/", cast_to=httpx.Response, body=body),
            secrets=(token,) if token else (),
        )
    except LettaConflict as error:
        raise LettaConflict(
            f"Letta at {link.base_url} has an MCP server named {name!r} already.",
            hint="Change its URL and token instead, or set another HAN_SOLO_BRIDGE_NAME.",
            status_code=error.status_code,
        ) from error
    return views.parse_mcp_server(answer)


async def update(link: Link, name: str, url: str, token: str | None) -> views.McpServerView:
    # PATCH /v1/mcp-servers/{id} answers 200 and keeps the old token. This older call stores both,
    # does not touch the tools, does not call the bridge, and works while the list is an error. It
    # must never be given a server_name: Letta deletes another server of that name.
    body = {"server_url": url} | ({"token": token} if token is not None else {})
    await link.write(
        f"changing the MCP server {name!r}",
        lambda letta: letta.patch(
            f"/v1/tools/mcp/servers/{quote(name, safe='')}", cast_to=httpx.Response, body=body
        ),
        secrets=(token,) if token else (),
    )
    found = next((server for server in await fetch_servers(link) if server.name == name), None)
    if found is None:
        raise LettaNotFound(f"Letta at {link.base_url} lists no MCP server named {name!r}.")
    if found.url != url or (token is not None and found.token != token):
        raise WriteNotVerified(
            f"The MCP server {name!r} does not have the URL and token that were written.",
            expected_sha256=_digest(url, token),
            found_sha256=_digest(found.url, found.token),
            hint="Letta 0.16.8 stores both; run han-solo doctor to see which server answers.",
        )
    return found


async def register_tool(link: Link, server_name: str, tool_name: str) -> views.ToolView:
    path = f"/v1/tools/mcp/servers/{quote(server_name, safe='')}/{quote(tool_name, safe='')}"
    try:
        answer = await link.write(
            f"registering the tool {tool_name!r} of {server_name!r}",
            lambda letta: letta.post(path, cast_to=httpx.Response),
        )
    except LettaUnavailable as error:
        raise _explain(error, server_name, tool_name) from error
    tool = views.parse_tool(answer)
    if tool.name != tool_name or tool.mcp_server != server_name:
        raise LettaRefused(
            f"Letta answered the tool {tool.name!r} of {tool.mcp_server!r} when asked to register "
            f"{tool_name!r} of {server_name!r}."
        )
    return tool


_GATEWAY: Final = (
    (
        "401",
        "refuses the token Letta has for it.",
        "Run sync-tools: it gives Letta the token and URL of now.",
    ),
    (
        "403",
        "refuses Letta's call (403).",
        "See HAN_SOLO_BRIDGE_URL, and what stands before the bridge; a new token does not help.",
    ),
)
"""What Letta's 502 quotes of the bridge's answer, what it says, and what to do."""

_NO_ANSWER: Final = (
    "does not answer Letta.",
    "Start the bridge (han-solo bridge), then sync-tools.",
)


def _explain(error: LettaUnavailable, server_name: str, tool_name: str) -> LettaUnavailable:
    """Say which 5xx it is: the bridge away, the bridge refusing Letta, or the name not listed."""
    if error.status_code == httpx.codes.BAD_GATEWAY:
        words, hint = next(
            (found for status, *found in _GATEWAY if status in error.message), _NO_ANSWER
        )
        return LettaUnavailable(
            f"Letta can not register {tool_name!r}: the MCP server {server_name!r} {words}",
            hint=hint,
            status_code=error.status_code,
        )
    if error.status_code == httpx.codes.INTERNAL_SERVER_ERROR:
        return LettaUnavailable(
            f"Letta failed to register {tool_name!r}: the MCP server {server_name!r} does not list "
            "it, or Letta itself failed.",
            hint="Compare with han-solo tools; Letta's log says more.",
            status_code=error.status_code,
        )
    return error


def _digest(url: str | None, token: str | None) -> str:
    return hashlib.sha256(f"{url}\n{token}".encode()).hexdigest()
