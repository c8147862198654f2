"""What the block commands work on: the agent's blocks and their versions, as the operator."""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ..blocks.model import Author, BlockState, Rights, Version, VersionEntry
from ..blocks.service import Blocks
from ..blocks.versions import BlockVersions
from ..clock import Clock
from ..connections import Connections
from ..errors import BlockRefused, NotFound
from ..letta.gateway import LettaGateway
from ..reconcile.known import KnownAgent
from ..reconcile.spec import load_spec
from ..settings import Settings
from .services import open_database


@dataclass(frozen=True, slots=True)
class BlockSession:
    """The blocks of the managed agent."""

    blocks: Blocks
    versions: BlockVersions

    async def load_last(self, states: Iterable[BlockState]) -> dict[str, VersionEntry]:
        """Return the last version of each block, by label; a block without any is left out."""
        found = {}
        for state in states:
            for entry in await self.versions.list_entries(state.view.id, limit_rows=1, before=None):
                found[state.label] = entry
        return found

    async def read_recorded(self, label: str) -> BlockState:
        """Read a block whose present text is a version; an outside edit is made one first."""
        state = await self.blocks.read(label)
        if state.version is None:
            await self.blocks.inspect(label)
            state = await self.blocks.read(label)
        return state

    async def load_pair(
        self, label: str, old: int | None, new: int | None
    ) -> tuple[Version, Version]:
        """Load two versions to compare: the last and the one before it, unless told otherwise.

        Raises:
            BlockRefused: there are no two.
        """
        if new is None:
            entries = await self.blocks.history(label, limit=1)
            new = entries[0].number if entries else None
        if new is None or (old is None and new == 1):
            count = "no version yet" if new is None else "one version only"
            raise BlockRefused(
                f"The core block {label!r} has {count}, so there is nothing to compare.",
                reason="unknown_version",
                hint=f"See `han-solo blocks history {label}`.",
            )
        older = old if old is not None else new - 1
        return await self.blocks.version(label, older), await self.blocks.version(label, new)


@asynccontextmanager
async def open_blocks(settings: Settings) -> AsyncIterator[BlockSession]:
    """Connect to Postgres and Letta; both are closed at the end.

    Raises:
        NotFound: there is no agent yet.
        HanSoloError: a part is away, or the agent spec can not be used.
    """
    where = Connections(settings)
    spec = load_spec(settings.agent_spec, person=settings.person, model=where.model)
    async with (
        open_database(settings) as db,
        LettaGateway.connect(
            where.letta_url, where.letta_password, timeout_s=settings.letta_timeout_s
        ) as gateway,
    ):
        clock = Clock()
        known = KnownAgent(db, spec.name, clock)
        agent_id = settings.agent_id or await known.load_agent_id()
        if agent_id is None:
            raise NotFound(
                f"There is no agent {spec.name!r} yet, so there are no core blocks.",
                hint="Run `han-solo up` (scripts/up), which makes it from its spec.",
            )
        versions = BlockVersions(db, clock)
        yield BlockSession(
            blocks=Blocks(
                gateway,
                versions,
                agent_id,
                Author("operator", user_name()),
                rights=Rights.of(spec.blocks),
                timeout_s=settings.letta_timeout_s,
                clock=clock,
            ),
            versions=versions,
        )


def user_name() -> str:
    """Return who sits at the terminal, for the history."""
    try:
        return getpass.getuser() or "operator"
    except (KeyError, OSError):  # a container's user may have no name
        return "operator"
