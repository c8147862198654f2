"""Carry out a plan: stage by stage, each read back before the next, each step noted.

The stages stand in the order in which a failure does least harm: the server, its tools, what is
attached, blocks, the agent's settings, and only then what is detached. A step whose effect can not
be read back has failed; the first failure stops the plan, and running again finishes it, since the
next plan is made from what is there then.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ..errors import BridgeError, HanSoloError
from . import apply_agent
from .gateway import Gateway
from .known import Remember
from .model import Desired, Observed, ObservedTool
from .observe import build_agent, build_server, build_tools
from .plan import (
    AttachTool,
    DetachTool,
    Plan,
    RegisterServer,
    RegisterTool,
    Step,
    UpdateServer,
    UpdateTool,
    target_of,
)
from .steps import NoteSteps, Steps, Taken
from .verify import not_verified


async def apply_plan(
    plan: Plan,
    desired: Desired,
    observed: Observed,
    *,
    gateway: Gateway,
    remember: Remember,
    note: NoteSteps,
) -> Observed:
    """Carry out a plan that was made from exactly these two states, moments ago.

    Returns:
        What is afterwards, as it was read back; ``diff`` of it is empty.

    Raises:
        WriteNotVerified: Letta accepted a step, and reading back does not show it.
        HanSoloError: a step failed; the journal says which.
    """
    run = _Run(plan, desired, observed, gateway, remember, Steps(plan, note))
    await run.register()
    await run.attach()
    await run.describe()
    await run.detach()
    return run.observed


@dataclass(slots=True)
class _Run:
    plan: Plan
    desired: Desired
    observed: Observed
    gateway: Gateway
    remember: Remember
    steps: Steps

    async def register(self) -> None:
        """Register the server and tools, one by one; then read all tools back."""
        taken: list[Taken] = []
        for step in self.plan.steps:
            match step:
                case RegisterServer():
                    await self.steps.attempt(step, self._register_server(step), taken)
                case UpdateServer():
                    await self.steps.attempt(step, self._update_server(step), taken)
                case RegisterTool() | UpdateTool():
                    await self.steps.attempt(step, self._register_tool(step.name), taken)
                case _:
                    pass
        if all(isinstance(step, UpdateServer) for step, _ in taken):
            # The gateway reads a server's address and token back itself.
            await self.steps.settle(taken, None, _no_fault)
        else:
            await self.steps.settle(taken, self._read_tools, self._check_registered)

    async def attach(self) -> None:
        """Attach tools, several at once; then read the agent back."""
        steps = [step for step in self.plan.steps if isinstance(step, AttachTool)]
        agent_id = self.observed.agent.id

        async def attach(step: Step) -> dict[str, object]:
            row = self._usable(target_of(step))
            if row is None:
                raise not_verified(step, "registered", "missing")
            await self.gateway.attach_tool(agent_id, row.id)
            return {"tool_id": row.id}

        await self.steps.all_at_once(steps, attach, self._read_agent, self._check_attached)

    async def describe(self) -> None:
        """Bring blocks, model settings, tool rules and system prompt in line, one by one."""
        for step in self.plan.steps:
            call = apply_agent.prepare(
                step, self.desired.spec, self.observed, self.gateway, self.remember
            )
            if call is None:
                continue
            taken: list[Taken] = []
            await self.steps.attempt(step, call, taken)
            await self.steps.settle(
                taken,
                self._read_agent,
                lambda step: apply_agent.check(step, self.desired.spec, self.observed.agent),
            )

    async def detach(self) -> None:
        """Detach tools; then read the agent back."""
        steps = [step for step in self.plan.steps if isinstance(step, DetachTool)]

        async def detach(step: Step) -> dict[str, object]:
            assert isinstance(step, DetachTool)
            await self.gateway.detach_tool(self.observed.agent.id, step.tool_id)
            return {"tool_id": step.tool_id, "why": step.why}

        await self.steps.all_at_once(steps, detach, self._read_agent, self._check_detached)

    async def _register_server(self, step: RegisterServer) -> dict[str, object]:
        server = self.desired.server
        row = await self.gateway.register_mcp_server(server.name, server.url, server.token)
        await self.remember.note_server(row.id, row.name)
        servers = (*self.observed.servers, build_server(row))
        self.observed = dataclasses.replace(self.observed, servers=servers)
        return {"server_id": row.id, "url": server.url, "tools": len(step.tools)}

    async def _update_server(self, step: UpdateServer) -> dict[str, object]:
        server = self.desired.server
        before = next(row for row in self.observed.servers if row.id == step.server_id)
        row = await self.gateway.update_mcp_server(server.name, url=server.url, token=server.token)
        servers = tuple(
            build_server(row) if other.id == row.id else other for other in self.observed.servers
        )
        self.observed = dataclasses.replace(self.observed, servers=servers)
        return {"server_id": step.server_id, "url": server.url, "previous_url": before.url}

    async def _register_tool(self, name: str) -> dict[str, object]:
        tool = await self.gateway.register_tool(self.desired.server.name, name)
        return {"tool_id": tool.id}

    def _usable(self, name: str) -> ObservedTool | None:
        """Return the tool of ours, or the built-in, of that name."""
        is_ours = name in self.desired.names()
        for row in self.observed.named(name):
            if row.server == self.desired.server.name if is_ours else row.is_builtin:
                return row
        return None

    def _check_registered(self, step: Step) -> HanSoloError | None:
        match step:
            case RegisterServer(name=server, url=url, tools=names):
                found = [name for name in names if self._usable(name)]
                if names and not found:
                    return BridgeError(
                        f"Letta registered {server!r} and got no tools from {url}: it does not "
                        "reach the bridge, or the bridge refuses its token.",
                        hint="`han-solo doctor` tells which, and the ways round.",
                    )
                stale = next((name for name in names if not self._is_fresh(name)), None)
                return not_verified(step, "all tools", f"{stale} differs") if stale else None
            case RegisterTool(name=name):
                fine = self._is_fresh(name)
            case UpdateTool(name=name, tool_id=tool_id):
                row = self._usable(name)
                fine = self._is_fresh(name) and row is not None and row.id == tool_id
            case _:
                fine = True
        return None if fine else not_verified(step, "the declared schema", "another or none")

    def _is_fresh(self, name: str) -> bool:
        row = self._usable(name)
        wanted = next(tool.fingerprint for tool in self.desired.tools if tool.name == name)
        return row is not None and row.fingerprint == wanted

    def _check_attached(self, step: Step) -> HanSoloError | None:
        row = self._usable(target_of(step))
        attached = {tool.id for tool in self.observed.agent.tools}
        if row is not None and row.id in attached:
            return None
        return not_verified(step, "attached", "not attached")

    def _check_detached(self, step: Step) -> HanSoloError | None:
        assert isinstance(step, DetachTool)
        if any(tool.id == step.tool_id for tool in self.observed.agent.tools):
            return not_verified(step, "detached", "attached")
        return None

    async def _read_tools(self) -> None:
        tools = build_tools(await self.gateway.fetch_tools())
        self.observed = dataclasses.replace(self.observed, tools=tools)

    async def _read_agent(self) -> None:
        agent = build_agent(await self.gateway.fetch_agent(self.observed.agent.id))
        self.observed = dataclasses.replace(self.observed, agent=agent)


def _no_fault(_step: Step) -> None:
    return None
