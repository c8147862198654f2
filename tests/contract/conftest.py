"""Fixtures of the gateway's tests against the real server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from han_solo.letta.gateway import LettaGateway
from han_solo.letta.views import AgentView
from tests.contract.actor import ActorTransport, open_gateway

MODEL = "openai-proxy/rehearsal"


@pytest.fixture
async def opened(
    letta_server: Any, letta_actor: Mapping[str, str]
) -> AsyncIterator[tuple[LettaGateway, ActorTransport]]:
    gateway, transport = open_gateway(letta_server.base_url, letta_actor)
    async with gateway:
        yield gateway, transport


@pytest.fixture
def gateway(opened: tuple[LettaGateway, ActorTransport]) -> LettaGateway:
    return opened[0]


@pytest.fixture
def transport(opened: tuple[LettaGateway, ActorTransport]) -> ActorTransport:
    return opened[1]


@pytest.fixture
async def http(
    letta_server: Any, letta_actor: Mapping[str, str]
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a bare client of the same organisation, to look at the world around the gateway."""
    async with httpx.AsyncClient(
        base_url=letta_server.base_url, headers=letta_actor, timeout=60
    ) as client:
        yield client


@pytest.fixture
async def agent(gateway: LettaGateway) -> AgentView:
    return await gateway.create_agent(name="ren", model=MODEL)
