"""A door to the test's Letta for a process of ours: it acts in the test's own organisation.

It forwards each request with Letta's actor header, and can be shut as when Letta is away.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

METHODS = ["GET", "POST", "PATCH", "PUT", "DELETE"]


@dataclass
class Door:
    url: str
    is_shut: bool = False


@contextlib.asynccontextmanager
async def open_door(base_url: str, actor: Mapping[str, str]) -> AsyncIterator[Door]:
    """Open a door on a free port."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    door = Door(f"http://127.0.0.1:{listener.getsockname()[1]}")
    async with httpx.AsyncClient(base_url=base_url, headers=actor, timeout=300) as client:

        async def forward(request: Request) -> Response:
            if door.is_shut:
                return Response("away", status_code=503)
            answer = await client.request(
                request.method,
                request.url.path,
                params=request.query_params.multi_items(),
                content=await request.body(),
                headers={"content-type": request.headers.get("content-type", "application/json")},
            )
            kind = answer.headers.get("content-type")
            return Response(answer.content, status_code=answer.status_code, media_type=kind)

        app = Starlette(routes=[Route("/{path:path}", forward, methods=METHODS)])
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield door
        finally:
            server.should_exit = True
            await serving
            listener.close()
