"""A gateway that acts in an organisation of its own, so that tests do not see one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from han_solo.letta.gateway import LettaGateway


@dataclass
class ActorTransport(httpx.AsyncBaseTransport):
    """The network, with Letta's actor header on each request; counts and notes what left."""

    headers: Mapping[str, str]
    inner: httpx.AsyncBaseTransport = field(default_factory=httpx.AsyncHTTPTransport)
    sent: list[tuple[str, str]] = field(default_factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append((request.method, request.url.path))
        request.headers.update(self.headers)
        return await self.inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self.inner.aclose()


def open_gateway(
    base_url: str,
    actor: Mapping[str, str],
    *,
    password: str | None = None,
    message_timeout_s: float = 120,
) -> tuple[LettaGateway, ActorTransport]:
    """Open a gateway that acts as ``actor``; a password given here replaces the actor's."""
    held = actor["Authorization"].removeprefix("Bearer ")
    only_actor = {key: value for key, value in actor.items() if key != "Authorization"}
    transport = ActorTransport(only_actor)
    gateway = LettaGateway.connect(
        base_url,
        password or held,
        timeout_s=60,
        message_timeout_s=message_timeout_s,
        transport=transport,
    )
    return gateway, transport
