"""Core blocks of one agent: reads, and writes that are read back before they count as done.

Who calls: the block tools, and later the block commands and jobs. A write costs three requests: one
read of the agent, which shows its blocks and its tools together, the write, and the read-back. All
of them share one short deadline, since the agent waits for its tool.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from .. import logs
from ..clock import Clock
from ..declare import LETTA_MEMORY_BUILTINS
from ..errors import BlockRefused, LettaConflict, LettaUnavailable, WriteNotVerified
from ..letta.text import require_storable
from ..letta.views import AgentView, BlockView

CONFLICT_DELAYS_S: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Waits after a 409: most parallel writes of one block get one, and a write takes some 100 ms."""

_log = logs.get("blocks")


class BlockGateway(Protocol):
    """What is needed of Letta; ``LettaGateway`` is one."""

    async def fetch_agent(self, agent_id: str) -> AgentView: ...
    async def fetch_block(self, block_id: str) -> BlockView: ...
    async def write_block(self, block_id: str, value: str) -> BlockView: ...


@dataclass(frozen=True, slots=True)
class VerifiedWrite:
    """A write that was read back, or found to be there already (``changed`` is false then)."""

    block: BlockView
    changed: bool
    sha256: str


class Blocks:
    """The core blocks of one agent."""

    def __init__(
        self,
        gateway: BlockGateway,
        agent_id: str,
        *,
        timeout_s: float = 10.0,
        clock: Clock | None = None,
    ) -> None:
        self._gateway = gateway
        self._agent_id = agent_id
        self._timeout_s = timeout_s
        self._clock = clock or Clock()

    async def list(self) -> tuple[BlockView, ...]:
        """Return all blocks, by label."""
        async with _deadline(self._timeout_s, "Reading the blocks"):
            agent = await self._gateway.fetch_agent(self._agent_id)
        return tuple(sorted(agent.blocks, key=lambda block: block.label))

    async def read(self, label: str) -> BlockView:
        """Return one block.

        Raises:
            BlockRefused: the agent has no block of that label; the known ones are named.
        """
        async with _deadline(self._timeout_s, f"Reading the block {label!r}"):
            return _find(await self._gateway.fetch_agent(self._agent_id), label)

    async def write(self, label: str, value: str) -> VerifiedWrite:
        """Replace a block's value, read it back, and compare to the character.

        Writing what is there already sends nothing. A conflict with another writer is tried again;
        when it is unknown whether a write arrived, the read-back decides.

        Raises:
            BlockRefused: before anything is sent: unknown label, over the limit, read-only, or the
                agent holds Letta's memory tools, which would revert it.
            UsageError: a character that Letta can not store.
            WriteNotVerified: another value was read back.
            LettaError: Letta is away, slow, or refused; the sentence says what is known.
        """
        require_storable(value, f"The value for the block {label!r}")
        async with _deadline(self._timeout_s, f"Writing the block {label!r}"):
            agent = await self._gateway.fetch_agent(self._agent_id)
            block = _find(agent, label)
            _refuse_what_would_not_last(agent, block, value)
            if block.value == value:
                return VerifiedWrite(block, changed=False, sha256=digest(value))
            return await self._write(block, value)

    async def _write(self, block: BlockView, value: str) -> VerifiedWrite:
        unknown: LettaUnavailable | None = None
        try:
            await self._patch(block, value)
        except LettaUnavailable as error:
            unknown = error
        found = await self._gateway.fetch_block(block.id)
        if found.value == value:
            _log.info("block.written", label=block.label, chars=len(value), sha256=digest(value))
            return VerifiedWrite(found, changed=True, sha256=digest(value))
        if unknown is not None:
            raise unknown
        raise WriteNotVerified(
            f"The block {block.label!r} was written and holds another value now "
            f"({len(found.value):,} characters instead of {len(value):,}).",
            expected_sha256=digest(value),
            found_sha256=digest(found.value),
            hint="Someone else wrote it at the same moment: read it again before you write again.",
        )

    async def _patch(self, block: BlockView, value: str) -> None:
        for delay_s in CONFLICT_DELAYS_S:
            try:
                await self._gateway.write_block(block.id, value)
            except LettaConflict:
                # Writers that met once would meet again after equal waits.
                await self._clock.sleep(delay_s * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            else:
                return
        await self._gateway.write_block(block.id, value)


def digest(value: str) -> str:
    """Return the SHA-256 of a block's value, as hex."""
    return hashlib.sha256(value.encode()).hexdigest()


def _find(agent: AgentView, label: str) -> BlockView:
    block = agent.block(label)
    if block is None:
        known = ", ".join(sorted(block.label for block in agent.blocks)) or "none at all"
        raise BlockRefused(
            f"The agent {agent.name} has no core block {label!r}.",
            reason="unknown_label",
            hint=f"It has: {known}.",
        )
    return block


def _refuse_what_would_not_last(agent: AgentView, block: BlockView, value: str) -> None:
    builtins = sorted(tool.name for tool in agent.tools if tool.name in LETTA_MEMORY_BUILTINS)
    if builtins:
        raise BlockRefused(
            f"The agent {agent.name} holds Letta's own memory tools ({', '.join(builtins)}), which "
            "write old values of every block back and would revert this write.",
            reason="builtin_memory_tools",
            hint="Run sync-tools, which offers to detach them.",
        )
    if block.read_only:
        raise BlockRefused(
            f"The core block {block.label!r} is read-only.",
            reason="read_only",
            hint="Change read_only in the agent spec and run sync-tools.",
        )
    if len(value) > block.limit:
        raise BlockRefused(
            f"The value for the core block {block.label!r} has {len(value):,} characters, "
            f"{len(value) - block.limit:,} more than its limit of {block.limit:,}.",
            reason="over_limit",
            hint="Shorten it; nothing was written.",
        )


@asynccontextmanager
async def _deadline(timeout_s: float, doing: str) -> AsyncIterator[None]:
    """Put one deadline over several requests; running out of it is an error with a sentence."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise LettaUnavailable(
            f"{doing} took longer than {timeout_s:g} s.",
            hint="Whether it was done is unknown: read it again.",
        ) from error
