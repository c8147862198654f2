"""A stand-in MCP server: it lists exactly the schemas it is told to, or misbehaves on purpose.

The contract tests need tools whose ``inputSchema`` is known to the byte, and bridges that are cold,
refuse the token or list fewer tools; a real bridge can be none of that at will. It speaks the
stateless streamable HTTP of MCP with plain JSON answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.server import ServerState


@dataclass(frozen=True)
class StubTool:
    """What ``tools/list`` says about one tool."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass
class McpStub:
    """The server's state, which tests change while it runs."""

    tools: Sequence[StubTool] = ()
    token: str | None = None
    tokens_seen: list[str | None] = field(default_factory=list)
    calls: list[tuple[str, Mapping[str, Any], str | None]] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        token = request.headers.get("authorization")
        self.tokens_seen.append(token)
        if self.token is not None and token != f"Bearer {self.token}":
            return JSONResponse({"error": "unauthorized"}, status_code=401)
        message = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        result = self._answer(message, request.headers.get("x-agent-id"))
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _answer(self, message: Mapping[str, Any], agent_id: str | None) -> dict[str, Any]:
        params = message.get("params") or {}
        match message["method"]:
            case "initialize":
                return {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "stub", "version": "1"},
                }
            case "tools/list":
                return {
                    "tools": [
                        {
                            "name": tool.name,
                            "description": tool.description,
                            "inputSchema": copy.deepcopy(dict(tool.input_schema)),
                        }
                        for tool in self.tools
                    ]
                }
            case "tools/call":
                self.calls.append((params["name"], params.get("arguments") or {}, agent_id))
                text = f"{params['name']} was called"
                return {"content": [{"type": "text", "text": text}], "isError": False}
        return {}


@contextlib.asynccontextmanager
async def serve(stub: McpStub, port: int) -> AsyncIterator[McpStub]:
    """Serve the stub on loopback for the length of the block.

    Without uvicorn's own server, which looks only ten times a second whether it is to end.
    """
    app = Starlette(routes=[Route("/mcp", stub.handle, methods=["GET", "POST", "DELETE"])])
    config = uvicorn.Config(app, log_level="error", lifespan="off", ws="none")
    config.load()
    state = ServerState()

    def build_protocol() -> asyncio.Protocol:
        return config.http_protocol_class(config=config, server_state=state, app_state={})

    loop = asyncio.get_running_loop()
    server = await loop.create_server(build_protocol, "127.0.0.1", port)
    stub.url = f"http://127.0.0.1:{port}/mcp"
    try:
        yield stub
    finally:
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        await asyncio.gather(*state.tasks, return_exceptions=True)
        await server.wait_closed()
