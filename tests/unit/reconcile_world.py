"""A small world to sync: a declared set, its bridge, an agent in the in-memory Letta, a journal."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from han_solo.errors import BridgeError
from han_solo.reconcile.apply import apply_plan
from han_solo.reconcile.diff import diff
from han_solo.reconcile.journal import StepRecord
from han_solo.reconcile.model import Consent, Desired, DesiredServer, Known, Observed
from han_solo.reconcile.observe import build_listed, observe
from han_solo.reconcile.plan import Plan
from han_solo.reconcile.spec import AgentSpec, ModelSpec
from han_solo.registry import ListedTool
from tests.unit.fake_letta import Bridge, FakeLetta

URL = "http://bridge.test/mcp"
TOKEN = "hs_abcdefgh_secret"

SPEC = AgentSpec(
    name="ren",
    person="Scott",
    description=None,
    timezone=None,
    model=ModelSpec(
        handle="openai-proxy/rehearsal",
        context_window=None,
        enable_reasoner=False,
        max_tokens=None,
        max_reasoning_tokens=None,
        temperature=None,
        parallel_tool_calls=None,
    ),
    builtin_tools=(),
    tool_rules=None,
    blocks=(),
    system=None,
    path=Path("/spec.toml"),
)


def listed(name: str, words: str = "Do it.", **properties: str) -> ListedTool:
    """Return a tool as MCP lists it."""
    return ListedTool(
        name,
        words,
        {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties),
        },
    )


@dataclass
class Notes:
    """What a run remembers and journals, kept in lists."""

    records: list[StepRecord] = field(default_factory=list)
    known: Known = field(default_factory=Known)

    async def note(self, records: Sequence[StepRecord]) -> None:
        self.records += records

    async def note_server(self, server_id: str, name: str) -> None:
        ids = self.known.server_ids | {server_id}
        self.known = dataclasses.replace(self.known, server_ids=ids)

    async def note_block(self, agent_id: str, label: str, block_id: str) -> None:
        blocks = {**self.known.blocks, label: block_id}
        self.known = dataclasses.replace(self.known, blocks=blocks)

    async def forget_block(self, agent_id: str, label: str, block_id: str) -> None:
        blocks = {key: value for key, value in self.known.blocks.items() if key != label}
        self.known = dataclasses.replace(self.known, blocks=blocks)


@dataclass
class World:
    """Everything around one agent."""

    declared: tuple[ListedTool, ...] = ()
    spec: AgentSpec = SPEC
    name: str = "han-solo"
    url: str = URL
    token: str = TOKEN
    letta: FakeLetta = field(default_factory=FakeLetta)
    notes: Notes = field(default_factory=Notes)
    agent_id: str = ""

    def __post_init__(self) -> None:
        self.letta.bridges.setdefault(self.url, Bridge(self.declared, self.token))
        if not self.agent_id:
            self.agent_id = self.letta.add_agent("ren", tags=(self.spec.tag,))

    def declare(self, *tools: ListedTool) -> None:
        """Change the registry, and restart the bridge from it."""
        self.declared = tools
        self.letta.bridges[self.url].tools = tools

    @property
    def desired(self) -> Desired:
        server = DesiredServer(self.name, self.url, self.token)
        return Desired(server, build_listed(self.declared), self.spec)

    async def observe(self) -> Observed:
        async def list_live() -> tuple[ListedTool, ...]:
            bridge = self.letta.bridges[self.url]
            if not bridge.is_up:
                raise BridgeError("it does not answer.")
            if bridge.token not in {None, self.token}:
                raise BridgeError("it refuses the token (401).")
            return bridge.tools

        async def load_known() -> Known:
            return self.notes.known

        return await observe(self.letta, self.agent_id, self.spec.name, list_live, load_known)

    async def plan(self, *consent: Consent) -> Plan:
        return diff(self.desired, await self.observe(), consent=consent)

    async def sync(self, *consent: Consent) -> Plan:
        """Plan and carry out; return the plan. A refused plan is not carried out."""
        observed = await self.observe()
        plan = diff(self.desired, observed, consent=consent)
        after = await apply_plan(
            plan,
            self.desired,
            observed,
            gateway=self.letta,
            remember=self.notes,
            note=self.notes.note,
        )
        if plan.refusal is None:
            assert diff(self.desired, after, consent=consent).steps == ()
        return plan

    def attached(self) -> set[str]:
        return {tool.name for tool in self.letta.agents[self.agent_id].tools}
