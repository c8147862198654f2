"""Bringing an agent of Letta's in: what it remembers, what its blocks hold, which tools it has.

Letta is only read. Each passage is known by its id there, and a block that has a version already is
left alone, so a second run adds nothing and one that was cut short goes on.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..blocks.model import Author, Rights
from ..blocks.service import Blocks
from ..blocks.versions import BlockVersions
from ..bridge.projection import list_tools
from ..clock import Clock
from ..connections import Connections
from ..errors import AgentGone, NotFound, UsageError
from ..letta.gateway import LettaGateway
from ..loader import load_registry
from ..memory.opening import open_passages
from ..memory.passage_import import BATCH, Tell
from ..memory.passage_model import Draft, Imported, Incoming, Provenance
from ..memory.transfer_import import find_keys
from ..principals import KIND_SCOPES, Principal
from ..reconcile.known import KnownAgent
from ..reconcile.spec import load_spec
from .block_session import user_name
from .services import open_database

if TYPE_CHECKING:
    from datetime import datetime

    from ..letta.archival import ArchivalPassage
    from ..letta.views import AgentView
    from ..memory.passages import Passages
    from ..registry import Registry
    from ..settings import Settings
    from ..store.database import Database

SOURCE: Final = "Letta's archival memory"
_ID: Final = re.compile(r"agent-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

AGENTS_NAMED: Final = 20
"""In the hint of an error."""


@dataclass(frozen=True, slots=True)
class Tools:
    """An agent's tools: ours that it has, ours that it lacks, Letta's own, and others."""

    ours: tuple[str, ...]
    missing: tuple[str, ...]
    lettas: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Adoption:
    """What adopting an agent will come to.

    ``new`` passages are to be imported, ``known`` were before; ``unusable`` says by id why one can
    not be kept. ``new_blocks`` have no version yet, ``known_blocks`` have. ``is_managed``: it is
    the agent that this installation looks after.
    """

    agent: AgentView
    new: tuple[Incoming, ...]
    known: int
    unusable: dict[str, str]
    new_blocks: tuple[str, ...]
    known_blocks: tuple[str, ...]
    tools: Tools
    is_managed: bool


@dataclass(frozen=True, slots=True)
class Adopted:
    """What it came to; ``versions`` are the numbers of the blocks' versions by label."""

    imported: Imported
    versions: dict[str, int]


@dataclass(frozen=True, slots=True)
class AdoptSession:
    """Plans and carries out the adoption of one agent."""

    settings: Settings
    gateway: LettaGateway
    db: Database
    passages: Passages
    versions: BlockVersions
    clock: Clock

    async def plan(self, wanted: str | None) -> Adoption:
        """Read all that there is, and say what of it is new.

        Args:
            wanted: the agent's id or name; the one looked after, if left out.

        Raises:
            NotFound: there is no such agent.
            UsageError: several have that name.
            HanSoloError: Letta or the database is away.
        """
        spec = load_spec(
            self.settings.agent_spec,
            person=self.settings.person,
            model=Connections(self.settings).model,
        )
        known_id = (
            self.settings.agent_id
            or await KnownAgent(self.db, spec.name, self.clock).load_agent_id()
        )
        agent = await self._find_agent(wanted, known_id)
        new, known, unusable = await self._read_passages(agent)
        heads = await self.versions.load_heads([block.id for block in agent.blocks])
        return Adoption(
            agent,
            tuple(new),
            known,
            unusable,
            tuple(sorted(block.label for block in agent.blocks if block.id not in heads)),
            tuple(sorted(block.label for block in agent.blocks if block.id in heads)),
            _sort_tools(agent, load_registry(self.settings.extensions)),
            agent.id == known_id,
        )

    async def carry_out(self, adoption: Adoption, tell: Tell | None = None) -> Adopted:
        """Import the passages and record the blocks.

        Raises:
            HanSoloError: a part is away; what was written until then is whole.
        """
        blocks = Blocks(
            self.gateway,
            self.versions,
            adoption.agent.id,
            Author("operator", user_name()),
            rights=Rights(),
            timeout_s=self.settings.letta_timeout_s,
            clock=self.clock,
        )
        versions = {}
        for label in adoption.new_blocks:
            (found,) = await blocks.inspect(label)
            versions[label] = found.version
        operator = Principal(user_name(), "operator", KIND_SCOPES["operator"])
        imported = await self.passages.import_batches(operator, _batches(adoption.new), tell)
        return Adopted(imported, versions)

    async def _find_agent(self, wanted: str | None, known_id: str | None) -> AgentView:
        if wanted is None:
            if known_id is None:
                raise UsageError(
                    "There is no agent that this installation looks after yet, so one has to be "
                    "named.",
                    hint=await self._name_agents("Give its id or name"),
                )
            return await self.gateway.fetch_agent(known_id)
        if _ID.fullmatch(wanted):
            try:
                return await self.gateway.fetch_agent(wanted)
            except AgentGone as error:
                raise NotFound(
                    error.message,
                    hint=await self._name_agents("Give the id or name of one of these"),
                ) from error
        found = await self.gateway.find_agents(wanted)
        if not found:
            raise NotFound(
                f"Letta at {self.gateway.base_url} has no agent named {wanted!r}.",
                hint=await self._name_agents("Give the id or name of one of these"),
            )
        if len(found) > 1:
            raise UsageError(
                f"Letta has {len(found)} agents named {wanted!r}.",
                hint=f"Give the id of one: {', '.join(agent.id for agent in found)}.",
            )
        return found[0]

    async def _name_agents(self, what: str) -> str:
        agents = await self.gateway.list_agents()
        if not agents:
            return "Letta has no agents; `han-solo up` (scripts/up) makes one from its spec."
        shown = ", ".join(f"{agent.id} ({agent.name})" for agent in agents[:AGENTS_NAMED])
        rest = f" and {len(agents) - AGENTS_NAMED} more" if len(agents) > AGENTS_NAMED else ""
        return f"{what}: {shown}{rest}."

    async def _read_passages(self, agent: AgentView) -> tuple[list[Incoming], int, dict[str, str]]:
        items: list[Incoming] = []
        unusable: dict[str, str] = {}
        now = self.clock.now()
        async for passage in self.gateway.read_archival(agent.id):
            item = _make_item(agent, passage, now)
            try:
                item.draft.check()
            except UsageError as error:
                unusable[passage.id] = error.message
            else:
                items.append(item)
        new = []
        for first in range(0, len(items), BATCH):
            batch = items[first : first + BATCH]
            there = await find_keys(self.db, [_key(item) for item in batch])
            new += [item for item in batch if _key(item) not in there]
        return new, len(items) - len(new), unusable


@asynccontextmanager
async def open_adoption(settings: Settings) -> AsyncIterator[AdoptSession]:
    """Connect to Postgres and Letta; both are closed at the end.

    Raises:
        HanSoloError: a part is away, or the agent spec can not be used.
    """
    where = Connections(settings)
    async with (
        open_database(settings) as db,
        LettaGateway.connect(
            where.letta_url, where.letta_password, timeout_s=settings.letta_timeout_s
        ) as gateway,
    ):
        clock = Clock()
        passages = open_passages(settings, db, clock)
        try:
            yield AdoptSession(settings, gateway, db, passages, BlockVersions(db, clock), clock)
        finally:
            await passages.vectors.close()


def _make_item(agent: AgentView, passage: ArchivalPassage, now: datetime) -> Incoming:
    at = passage.created_at or now
    return Incoming(
        draft=Draft(
            text=passage.text,
            author=agent.name,
            source=SOURCE,
            tags=tuple(sorted(set(passage.tags))),
            happened_at=at,
            import_key=f"letta-{passage.id}",
        ),
        provenance=Provenance(agent.name, agent.id, at),
    )


def _key(item: Incoming) -> str:
    return item.draft.import_key or ""


async def _batches(items: Sequence[Incoming]) -> AsyncIterator[Sequence[Incoming]]:
    for first in range(0, len(items), BATCH):
        yield items[first : first + BATCH]


def _sort_tools(agent: AgentView, registry: Registry) -> Tools:
    declared = {tool.name for tool in list_tools(registry, "agent")}
    attached = {tool.name for tool in agent.tools}
    lettas = {tool.name for tool in agent.tools if tool.is_letta_builtin}
    ours = (attached & declared) - lettas
    return Tools(
        tuple(sorted(ours)),
        tuple(sorted(declared - ours)),
        tuple(sorted(lettas)),
        tuple(sorted(attached - ours - lettas)),
    )
