"""An agent on the real Letta with its database and bridge, and guards to run on it.

A replay works on a ``GuardWorld``. ``mutate`` cuts a guard's check or remedy out, for the test that
each replay notices that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from han_solo.blocks.model import CARETAKER, Author, Rights
from han_solo.blocks.service import Blocks
from han_solo.blocks.versions import BlockVersions
from han_solo.clock import Clock
from han_solo.daemon.runner import GuardReport, run_guards
from han_solo.declare import Finding, GuardSpec
from han_solo.findings.model import Alert, FindingRow
from han_solo.findings.service import Findings
from han_solo.findings.snapshots import Snapshots
from han_solo.guard_context import CheckContext, GuardServices
from han_solo.letta.views import AgentView, BlockView
from han_solo.loader import load_registry
from han_solo.reconcile.spec import AgentSpec
from han_solo.turns.service import Turns
from tests.integration.reconcile_fixtures import Lab, build_tools, open_lab
from tests.unit.reconcile_world import SPEC

MODEL = dataclasses.replace(
    SPEC.model, context_window=200_000, max_tokens=4_096, temperature=0.3, parallel_tool_calls=False
)
GUARDED = dataclasses.replace(SPEC, model=MODEL)
"""A spec that declares all that a model switch is known to change."""


class Alerts:
    """Keeps what was told."""

    def __init__(self) -> None:
        self.sent: list[FindingRow] = []

    async def send(self, alerts: Sequence[Alert]) -> None:
        self.sent.extend(alert.finding for alert in alerts)


@dataclass
class GuardWorld:
    """One managed agent in an organisation of its own, synced, and what guards work on."""

    lab: Lab
    services: GuardServices
    agent_id: str
    epoch: int = 1
    alerts: Alerts = field(default_factory=Alerts)
    guards: dict[str, GuardSpec] = field(default_factory=dict)

    @property
    def findings(self) -> Findings:
        return self.services.findings

    async def agent(self) -> AgentView:
        return await self.lab.gateway.fetch_agent(self.agent_id)

    async def patch_agent(self, **fields: Any) -> None:
        """Change the agent behind our back, through Letta's API."""
        answer = await self.lab.http.patch(f"/v1/agents/{self.agent_id}", json=fields)
        answer.raise_for_status()

    async def block(self, label: str) -> BlockView:
        found = (await self.agent()).block(label)
        assert found
        return found

    async def patch_block(self, label: str, **fields: Any) -> None:
        """Change a block behind our back."""
        block = await self.block(label)
        answer = await self.lab.http.patch(f"/v1/blocks/{block.id}", json=fields)
        answer.raise_for_status()

    async def detach_block(self, block_id: str) -> None:
        """Take a block off the agent behind our back."""
        path = f"/v1/agents/{self.agent_id}/core-memory/blocks/detach/{block_id}"
        (await self.lab.http.patch(path)).raise_for_status()

    async def require_approval(self, tool: str) -> None:
        """Have calls of a tool wait for approval."""
        path = f"/v1/agents/{self.agent_id}/tools/approval/{tool}"
        answer = await self.lab.http.patch(path, json={"requires_approval": True})
        answer.raise_for_status()

    async def patch_tool(self, name: str, **fields: Any) -> None:
        """Change a tool behind our back."""
        tool_id = (await self.lab.tools())[name].id
        (await self.lab.http.patch(f"/v1/tools/{tool_id}", json=fields)).raise_for_status()

    async def delete_tool(self, tool_id: str) -> None:
        """Delete a tool behind our back, as somebody once did with all of them."""
        (await self.lab.http.delete(f"/v1/tools/{tool_id}")).raise_for_status()

    async def delete_agent(self, agent_id: str) -> None:
        (await self.lab.http.delete(f"/v1/agents/{agent_id}")).raise_for_status()

    async def make_tool(self, source: str) -> str:
        """Make a Python tool of somebody's and return its id."""
        made = await self.lab.http.post("/v1/tools/", json={"source_code": source})
        return str(made.raise_for_status().json()["id"])

    async def make_stranger(self, tools: Sequence[str]) -> str:
        """Make an agent that is not ours, with tools of ours on it."""
        ids = [(await self.lab.tools())[name].id for name in tools]
        made = await self.lab.gateway.create_agent(
            name=f"other-{len(ids)}", model=MODEL.handle, tool_ids=ids
        )
        return made.id

    async def add_agent(self, name: str, tools: Sequence[str]) -> str:
        """Make another managed agent, which has some of our tools."""
        agent_id = await self.make_stranger(tools)
        known = dataclasses.replace(self.lab.services, spec=dataclasses.replace(SPEC, name=name))
        await known.known.store_agent_id(agent_id)
        await self.services.snapshots.note(await self.lab.gateway.fetch_agent(agent_id))
        return agent_id

    async def tools_of(self, agent_id: str) -> set[str]:
        return {tool.name for tool in (await self.lab.gateway.fetch_agent(agent_id)).tools}

    def callback_tools(self, *names: str) -> None:
        """Say which of our tools may message the agent."""
        self.services = dataclasses.replace(self.services, callback_tools=frozenset(names))

    def blocks_of(self, author: Author) -> Blocks:
        """Return the blocks as somebody else writes them."""
        return build_blocks(self.lab, self.agent_id, author)

    async def check(self, name: str) -> tuple[Finding, ...]:
        """Run a guard's check alone; nothing is recorded."""
        context = CheckContext(self.services, self.agent_id, now=self.services.clock.now())
        return await self.guards[name].check(context)

    async def run(self, name: str, *, repair: bool = True) -> GuardReport:
        """Run one guard as the daemon does, in mode repair or observe."""
        (report,) = await run_guards(
            self.services,
            self.agent_id,
            [self.guards[name]],
            epoch=self.epoch,
            modes={name: "repair" if repair else "observe"},
            alerts=self.alerts,
        )
        return report

    def use(self, **changes: Any) -> None:
        """Change what the reconciler works on, such as ``spec``."""
        self.lab.use(**changes)
        self.services = build_guard_services(self.lab, self.agent_id)

    def mutate(self, name: str, *, check: bool = False, remedy: bool = False) -> None:
        """Cut out a guard's check or its remedy."""
        changes: dict[str, Any] = {}
        if check:
            changes["check"] = _find_nothing
        if remedy:
            changes["remedy"] = _do_nothing
        self.guards[name] = dataclasses.replace(self.guards[name], **changes)

    @staticmethod
    def without_config(agent: AgentView) -> AgentView:
        """Return all of an agent but its model configuration, to compare."""
        return dataclasses.replace(agent, llm_config={})


async def _find_nothing(_context: Any) -> tuple[Finding, ...]:
    return ()


async def _do_nothing(_context: Any, _findings: Any) -> str:
    return "Nothing was done."


def build_blocks(lab: Lab, agent_id: str, author: Author) -> Blocks:
    services = lab.services
    return Blocks(
        lab.gateway,
        BlockVersions(services.db, services.clock),
        agent_id,
        author,
        rights=Rights.of(services.spec.blocks),
        timeout_s=30,
    )


def build_guard_services(lab: Lab, agent_id: str, clock: Clock | None = None) -> GuardServices:
    db = lab.services.db
    clock = clock or lab.services.clock
    blocks = build_blocks(lab, agent_id, CARETAKER)
    return GuardServices(
        reconcile=lab.services,
        letta=lab.gateway,
        blocks=blocks,
        turns=Turns(db, lab.gateway, agent_id, gap_s=0.0),
        findings=Findings(db, clock),
        snapshots=Snapshots(db, clock),
        clock=clock,
    )


async def lead(world: GuardWorld, epoch: int) -> None:
    """Make that epoch the leader's, as an election does."""
    async with world.lab.services.db.transaction() as connection:
        await connection.execute(
            "INSERT INTO han_solo.leaders VALUES ($1, $2, 'test', now(), now())"
            " ON CONFLICT (agent_name) DO UPDATE SET epoch = excluded.epoch",
            world.lab.services.spec.name,
            epoch,
        )
    world.epoch = epoch


@dataclass(frozen=True)
class Replay:
    """A guard's incident, made to happen again; ``options`` are for its world."""

    run: Callable[[GuardWorld], Awaitable[None]]
    options: Mapping[str, Any]


def load_replay(name: str) -> Replay:
    """Return the replay of a guard; there is one for each."""
    module = importlib.import_module(f"tests.integration.replays.{name}")
    return Replay(module.replay, getattr(module, "WORLD", {}))


@contextlib.asynccontextmanager
async def open_guard_world(
    letta_server: Any,
    actor: Mapping[str, str],
    database_url: str,
    *,
    spec: AgentSpec = GUARDED,
    tools: int = 3,
    port: int = 0,
) -> AsyncIterator[GuardWorld]:
    """Open a world whose agent is in sync and whose guards are all there are."""
    declared = build_tools(tools)
    async with open_lab(
        letta_server, actor, database_url, tools=declared, spec=spec, port=port
    ) as lab:
        outcome = await lab.sync()
        guards = {guard.name: guard for guard in load_registry().guards}
        services = build_guard_services(lab, outcome.agent_id)
        world = GuardWorld(lab, services, outcome.agent_id, guards=guards)
        await services.snapshots.note(await world.agent())
        await lead(world, 1)
        yield world
