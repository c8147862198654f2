"""What the tests of model switches share: an agent, models to switch to, and a faulty Letta.

Models are added to the test's own organisation as providers with a key of one's own, so that the
tests of other organisations do not see them. Each is a rehearsal model under another name.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from han_solo.clock import Clock
from han_solo.embedded import rehearsal
from han_solo.embedded.ports import find_free_port
from han_solo.letta.views import AgentView
from han_solo.reconcile.switch.config import Asked
from han_solo.reconcile.switch.plan import SwitchPlan
from han_solo.reconcile.switch.preflight import Wanted, make_switch_plan
from han_solo.reconcile.switch.run import Switched, switch_model
from han_solo.reconcile.switch.services import SwitchServices
from han_solo.turns.silence import find_cause
from tests.integration.guard_fixtures import GUARDED
from tests.integration.reconcile_fixtures import Lab, build_tools, open_lab

SECOND = "openai-proxy/second"
SILENT = "openai-proxy/silent"
KEY = "sk-a-key-nobody-may-see"
WINDOW = 30_000
"""What Letta gives a model that it does not know, in tokens."""

SPEC = dataclasses.replace(
    GUARDED, model=dataclasses.replace(GUARDED.model, context_window=WINDOW - 2_000)
)


def build_model_app(name: str) -> Starlette:
    """Build a rehearsal model under another name; one named ``silent`` says nothing.

    It takes every key but one that reads ``wrong``.
    """

    async def models(request: Request) -> Response:
        if request.headers.get("authorization") == "Bearer wrong":
            return JSONResponse({"error": {"message": "Incorrect API key provided"}}, 401)
        model = {"id": name, "object": "model", "context_length": WINDOW}
        return JSONResponse({"object": "list", "data": [model]})

    async def say_nothing(_request: Request) -> Response:
        message = {"role": "assistant", "content": ""}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        usage = {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}
        body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": name}
        return JSONResponse({**body, "choices": [choice], "usage": usage})

    routes: list[BaseRoute] = [Route("/v1/models", models)]
    if name == "silent":
        routes.append(Route("/v1/chat/completions", say_nothing, methods=["POST"]))
    return Starlette(routes=[*routes, Mount("/", rehearsal.build_app())])


@contextlib.asynccontextmanager
async def run_model(name: str) -> AsyncIterator[str]:
    """Run a model server in this process and yield its base URL."""
    port = find_free_port()
    config = uvicorn.Config(build_model_app(name), port=port, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        await serving


class FaultyGateway:
    """The gateway, with something that happens before or after a call of a name."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self.before: dict[str, Callable[..., Awaitable[None]]] = {}
        self.after: dict[str, Callable[..., Awaitable[None]]] = {}
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._gateway, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            if name in self.before:
                await self.before[name](*args)
            result = await found(*args, **kwargs)
            if name in self.after:
                await self.after[name](*args)
            return result

        return call


@dataclass
class SwitchWorld:
    """One managed agent, in sync, and what a switch of it works on."""

    lab: Lab
    agent_id: str
    gateway: FaultyGateway
    services: SwitchServices = field(init=False)
    job: dict[str, Any] = field(default_factory=dict)
    """What a process that switches by itself is told."""

    def __post_init__(self) -> None:
        self.services = SwitchServices(
            self.gateway,  # type: ignore[arg-type]
            self.lab.services.db,
            self.lab.services.spec,
            find_cause,
            Clock(),
        )

    def use_spec(self, **changes: Any) -> None:
        """Change the spec's model."""
        spec = self.lab.services.spec
        spec = dataclasses.replace(spec, model=dataclasses.replace(spec.model, **changes))
        self.lab.use(spec=spec)
        self.services = dataclasses.replace(self.services, spec=spec)

    async def agent(self) -> AgentView:
        return await self.lab.gateway.fetch_agent(self.agent_id)

    async def whole(self) -> Mapping[str, Any]:
        """Return the agent as Letta gives it, raw, but for what tells when it was last touched."""
        include = ["agent.tools", "agent.blocks", "agent.tags"]
        answer = await self.lab.http.get(f"/v1/agents/{self.agent_id}", params={"include": include})
        body: dict[str, Any] = answer.raise_for_status().json()
        body.pop("updated_at")
        body["tools"] = sorted(tool["id"] for tool in body["tools"])
        return body

    async def plan(self, handle: str | None, **asked: int) -> SwitchPlan:
        return await make_switch_plan(self.services, self.agent_id, Wanted(handle, Asked(**asked)))

    async def switch(self, handle: str | None, **asked: int) -> Switched:
        return await switch_model(self.services, self.agent_id, Wanted(handle, Asked(**asked)))

    async def detach(self, names: Sequence[str]) -> None:
        """Take tools off the agent behind our back."""
        for tool in (await self.agent()).tools:
            if tool.name in names:
                await self.lab.gateway.detach_tool(self.agent_id, tool.id)

    async def count_agents(self) -> int:
        answer = await self.lab.http.get("/v1/agents/count")
        count: int = answer.raise_for_status().json()
        return count


@contextlib.asynccontextmanager
async def open_switch_world(
    letta_server: Any,
    actor: Mapping[str, str],
    database_url: str,
    *,
    tools: int = 3,
    port: int = 0,
) -> AsyncIterator[SwitchWorld]:
    """Open a world with two more models: one that answers and one that says nothing."""
    async with (
        open_lab(
            letta_server, actor, database_url, tools=build_tools(tools), spec=SPEC, port=port
        ) as lab,
        run_model("second") as second,
        run_model("silent") as silent,
    ):
        await lab.gateway.add_provider("second", "openai", KEY, second)
        await lab.gateway.add_provider("silent", "openai", KEY, silent)
        outcome = await lab.sync()
        yield SwitchWorld(lab, outcome.agent_id, FaultyGateway(lab.gateway))
