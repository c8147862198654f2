"""What the running bridge lists at this moment, asked over HTTP as any client would.

The reconciler compares it with the registry before it touches Letta (``bridge_cold``,
``bridge_differs``). It is one plain request and not an MCP client's three, and FastMCP's client
would pass the headers of a request being served on to this one.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from ..errors import BridgeError
from ..registry import ListedTool
from .hosts import LOOPBACK_NAMES

TIMEOUT_S: Final = 10.0
"""A list of a hundred tools takes some 20 ms; longer means that the bridge is not well."""

_START: Final = "See that it runs: `han-solo status`, or start it with `han-solo bridge`."
_ACCEPT: Final = "application/json, text/event-stream"  # MCP asks for both to be named


async def list_live_tools(
    url: str, token: str, *, timeout_s: float = TIMEOUT_S
) -> tuple[ListedTool, ...]:
    """List the tools that the bridge at ``url`` (ending in ``/mcp``) shows that token, by name.

    Raises:
        BridgeError: it does not answer, refuses the token, or does not answer in MCP's form.
    """
    tools: list[ListedTool] = []
    cursor: str | None = None
    # A proxy of the environment can not reach our loopback.
    parts = urlsplit(url)
    is_local = parts.hostname in LOOPBACK_NAMES
    # Reading the certificates takes 15 ms, a good part of a sync that has nothing to do.
    verify = parts.scheme == "https"
    async with httpx.AsyncClient(
        timeout=timeout_s, trust_env=not is_local, verify=verify
    ) as client:
        while True:
            result = await _fetch_page(client, url, token, cursor)
            try:
                tools += [
                    ListedTool(tool["name"], tool.get("description") or "", tool["inputSchema"])
                    for tool in result["tools"]
                ]
                cursor = result.get("nextCursor")
            except (KeyError, TypeError, AttributeError) as error:
                raise _unreadable(url) from error
            if not cursor:
                return tuple(sorted(tools, key=lambda tool: tool.name))


async def _fetch_page(
    client: httpx.AsyncClient, url: str, token: str, cursor: str | None
) -> dict[str, Any]:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {"cursor": cursor} if cursor else {},
    }
    headers = {"Authorization": f"Bearer {token}", "Accept": _ACCEPT}
    try:
        response = await client.post(url, json=body, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise BridgeError(
            f"The bridge at {url} does not answer ({type(error).__name__}).", hint=_START
        ) from error
    if response.status_code == httpx.codes.UNAUTHORIZED:
        raise BridgeError(
            f"The bridge at {url} refuses the token (401).",
            hint="Stop the bridge and start it again (han-solo up does): it makes a good one and "
            "gives it to Letta.",
        )
    if response.status_code == httpx.codes.FORBIDDEN:
        raise BridgeError(
            f"The bridge at {url} refuses the call (403): {_read_error(response)}",
            hint="A new token does not help: see what stands between here and the bridge (a proxy, "
            "a VPN), and whether HAN_SOLO_BRIDGE_URL is the bridge's own address.",
        )
    if response.status_code != httpx.codes.OK:
        raise BridgeError(
            f"The bridge at {url} answers {response.status_code}: {_read_error(response)}",
            hint=_START,
        )
    try:
        result = response.json()["result"]
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(url) from error
    if not isinstance(result, dict):
        raise _unreadable(url)
    return result


def _read_error(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return response.reason_phrase + "."


def _unreadable(url: str) -> BridgeError:
    return BridgeError(
        f"What answers at {url} is not the bridge.",
        hint="See what listens there, and HAN_SOLO_BRIDGE_URL.",
    )
