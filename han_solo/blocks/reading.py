"""Reading the core blocks of one agent: as Letta has them, and the versions that were kept.

Nothing here writes; ``service.Blocks`` adds that.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import BlockRefused
from ..letta.views import AgentView, BlockView
from . import rules
from .model import BlockState, Rights, Version, VersionEntry, digest
from .operation import BlockGateway
from .records import Head
from .rounds import deadline
from .versions import BlockVersions


class BlockReader:
    """The core blocks of one agent, to read.

    Args:
        gateway: Letta.
        versions: the versions, one object a process.
        agent_id: Letta's id of the agent.
        rights: who may write which block, by the agent spec.
        timeout_s: what one call may take.
    """

    def __init__(
        self,
        gateway: BlockGateway,
        versions: BlockVersions,
        agent_id: str,
        *,
        rights: Rights | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        self._gateway = gateway
        self._versions = versions
        self._agent_id = agent_id
        self._rights = rights or Rights()
        self._timeout_s = timeout_s

    async def list(self) -> tuple[BlockState, ...]:
        """Return all blocks, by label."""
        async with deadline(self._timeout_s, "Reading the blocks"):
            agent = await self._read_agent()
            heads = await self._versions.load_heads([block.id for block in agent.blocks])
        states = [self._state(block, heads.get(block.id)) for block in agent.blocks]
        return tuple(sorted(states, key=lambda state: state.label))

    async def read(self, label: str) -> BlockState:
        """Return one block.

        Raises:
            BlockRefused: the agent has no block of that label; the known ones are named.
        """
        async with deadline(self._timeout_s, f"Reading the block {label!r}"):
            block = rules.find(await self._read_agent(), label)
            heads = await self._versions.load_heads([block.id])
        return self._state(block, heads.get(block.id))

    async def history(
        self, label: str, *, limit: int = 20, before: int | None = None
    ) -> tuple[VersionEntry, ...]:
        """Return a block's versions without their texts, newest first.

        Args:
            label: a label of the agent's, or one that it had.
            limit: versions, at most.
            before: only versions of a smaller number.
        """
        async with deadline(self._timeout_s, f"Reading the versions of {label!r}"):
            block_id = await self._find_id(label)
            return await self._versions.list_entries(block_id, limit_rows=limit, before=before)

    async def version(self, label: str, number: int) -> Version:
        """Return one version with its text.

        Raises:
            BlockRefused: there is no such block, or no such version; the last one is named.
        """
        async with deadline(self._timeout_s, f"Reading version {number} of {label!r}"):
            block_id = await self._find_id(label)
            version = await self._versions.load_version(block_id, number)
            if version is None:
                heads = await self._versions.load_heads([block_id])
                last = heads[block_id].number if block_id in heads else 0
                raise BlockRefused(
                    f"The core block {label!r} has no version {number}.",
                    reason="unknown_version",
                    hint=f"It has 1 to {last}." if last else "It has none yet.",
                )
            return version

    async def former(self, label: str, attached: Sequence[str]) -> Version | None:
        """Return the last text under a label of a block that the agent no longer has.

        Args:
            label: a label that the agent's block has now, or had.
            attached: the ids of the blocks that the agent has.
        """
        return await self._versions.find_former(self._agent_id, label, attached)

    async def _read_agent(self) -> AgentView:
        agent = await self._gateway.fetch_agent(self._agent_id)
        self._versions.agents.learn(agent)
        return agent

    async def _find_id(self, label: str) -> str:
        """Find the block of a label: the agent's, else the one it was last written under."""
        agent = await self._read_agent()
        block = agent.block(label)
        if block is not None:
            return block.id
        former = await self._versions.find_block(self._agent_id, label)
        return former or rules.find(agent, label).id

    def _state(self, block: BlockView, head: Head | None) -> BlockState:
        sha256 = digest(block.value)
        return BlockState(
            view=block,
            version=head.number if head and head.sha256 == sha256 else None,
            sha256=sha256,
            writers=self._rights.writers_of(block.label),
            is_open=head is not None and head.is_open,
        )
