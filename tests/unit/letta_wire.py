"""A Letta on the wire that answers as it is told and records what left; no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from han_solo.letta.gateway import LettaGateway

BASE_URL = "http://letta.example:8283"
PASSWORD = "a-password-nobody-may-see"

Answer = httpx.Response | Exception


@dataclass
class FakeClock:
    """A clock whose sleeps are noted and take no time."""

    slept_s: list[float] = field(default_factory=list)

    async def sleep(self, delay_s: float) -> None:
        self.slept_s.append(delay_s)


@dataclass
class Wire:
    """Answers each request with the next answer, the last one for ever; or by a function."""

    answers: Sequence[Answer] | Callable[[httpx.Request], Answer] = ()
    requests: list[httpx.Request] = field(default_factory=list)
    clock: FakeClock = field(default_factory=FakeClock)

    def gateway(self, *, password: str | None = PASSWORD) -> LettaGateway:
        return LettaGateway.connect(
            BASE_URL,
            password,
            clock=self.clock,  # type: ignore[arg-type]
            transport=httpx.MockTransport(self._answer),
        )

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if callable(self.answers):
            answer = self.answers(request)
        else:
            answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        # A response can be read once; the last answer serves several requests.
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests if request.content]


def reply(body: object, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=body)


AGENT: dict[str, Any] = {
    "id": "agent-1",
    "name": "ren",
    "agent_type": "letta_v1_agent",
    "system": "",
    "llm_config": {"model": "m", "context_window": 30000, "enable_reasoner": False},
    "tools": [],
    "blocks": [],
    "tags": ["kept"],
    "tool_rules": [],
}
HEALTH = {"status": "ok", "version": "0.16.8"}
TOOL = {"id": "tool-1", "name": "t", "tool_type": "external_mcp", "tags": ["mcp:s"]}
BLOCK = {"id": "block-1", "label": "l", "value": "v", "limit": 100}
SERVER = {
    "id": "mcp_server-1",
    "server_name": "s",
    "mcp_server_type": "streamable_http",
    "server_url": "https://bridge.example/mcp",
    "auth_token": "Bearer token",
}
PROVIDER = {"id": "provider-1", "name": "mine", "provider_type": "openai", "api_key_enc": "key"}
TURN: dict[str, Any] = {
    "messages": [],
    "stop_reason": {"stop_reason": "end_turn"},
    "usage": {"step_count": 1},
}


def healthy(request: httpx.Request) -> httpx.Response:
    """Answer as a Letta does that has one of everything."""
    path = request.url.path
    if path.endswith("/count"):
        return reply(1)
    if request.method == "GET" and path.endswith(("/messages", "/archival-memory")):
        return reply([])
    by_end: dict[str, object] = {
        "/v1/health/": HEALTH,
        "/v1/models/": [{"handle": "p/m", "name": "m", "context_window": 1}],
        "/v1/models/embedding": [{"handle": "p/e"}],
        "/v1/runs/": [],
        "/runs/run-1/messages": [],
        "/messages": TURN,
        "/tools/t/run": {"status": "success", "func_return": "done"},
        "/v1/tools/mcp/servers/s/t": TOOL,
        "/v1/tools/mcp/servers/s": SERVER,
        "/v1/tools/": [TOOL],
    }
    for end, body in by_end.items():
        if path.endswith(end):
            return reply(body)
    is_list = request.method == "GET" and path.endswith("/")
    one: object = BLOCK if path.startswith("/v1/blocks") else AGENT
    if "mcp-servers" in path:
        one = SERVER
    if path.startswith("/v1/providers"):
        one = PROVIDER
    return reply([one] if is_list else one)
