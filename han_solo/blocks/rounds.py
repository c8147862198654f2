"""Rounds: take a block's lock, look at it, let a step act, commit; until one comes to a result.

A step that recorded something it found ends its round, so that this is committed before the next
step builds on it. Most writes take one round.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from ..clock import Clock
from ..errors import BlockBusy, LettaNotFound, LettaUnavailable
from ..letta.views import BlockView
from . import rules
from .facts import Facts
from .model import digest
from .operation import BlockGateway, Operation
from .records import Head
from .versions import BlockVersions, HeldBlock

MAX_ROUNDS: Final = 12
"""Looks at a block that keeps changing under our hands, before the operation is given up."""

LOCK_SHARE: Final = 0.9
"""Of the time that is left, for the lock: who waits in vain is told so, not that time ran out."""

CONFLICT_PAUSE_S: Final = 0.05
"""Before the next look after somebody outside wrote at the same moment."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Look:
    """A block as it is while its lock is held."""

    held: HeldBlock
    agent: Facts
    block: BlockView
    head: Head | None


Step = Callable[[Look, Operation], Awaitable[T | None]]


class Rounds:
    """Runs operations on one agent's blocks."""

    def __init__(
        self,
        gateway: BlockGateway,
        versions: BlockVersions,
        agent_id: str,
        *,
        timeout_s: float,
        clock: Clock,
    ) -> None:
        self._gateway = gateway
        self._versions = versions
        self._agent_id = agent_id
        self._timeout_s = timeout_s
        self._clock = clock

    async def run(self, operation: Operation, step: Step[T], doing: str) -> T:
        """Take rounds until one comes to a result."""
        async with deadline(self._timeout_s, doing) as limit:
            operation.start(limit, self._timeout_s)
            conflicts = 0
            for _ in range(MAX_ROUNDS):
                done = await self._round(operation, step)
                if done is not None:
                    return done
                operation.allow(0)
                if operation.conflicts > conflicts:
                    conflicts = operation.conflicts
                    # Writers that met once would meet again after equal waits.
                    pause_s = CONFLICT_PAUSE_S * random.uniform(1, 2 * conflicts)  # noqa: S311 - no secret
                    await self._clock.sleep(pause_s)
        raise BlockBusy(
            f"The core block {operation.label!r} was written by others outside each time that it "
            "was about to be written.",
            hint="Nothing was written; try again.",
        )

    async def _round(self, operation: Operation, step: Step[T]) -> T | None:
        """Take the lock, look, and let the step act; what it recorded is committed then.

        The block is read while the lock is taken. What was read so holds: its text is compared with
        the last version, which is loaded under the lock, and read again where they differ.
        """
        label = operation.label
        reading = asyncio.create_task(self._read(label))
        try:
            facts = self._versions.agents.recall(self._agent_id)
            known = facts.block_ids.get(label) if facts else None
            block_id = known or (await reading)[0].id
            async with self._versions.hold(block_id, wait_s=operation.rest_s * LOCK_SHARE) as held:
                head = await held.load_head()
                block, facts = await reading
                if not facts.are_fresh:  # others held the lock for long
                    block, facts = await self._read(label)
                if block.id != block_id or block.label != label:
                    self._versions.agents.forget(self._agent_id)
                    return None
                if head is None or head.is_open or not holds(block, head):
                    block = await self._gateway.fetch_block(block.id)
                done = await step(Look(held, facts, block, head), operation)
            operation.landed = None
            return done
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self, label: str) -> tuple[BlockView, Facts]:
        """Read the block alone where the agent was read just now, else the agent."""
        facts = self._versions.agents.recall(self._agent_id)
        block_id = facts.block_ids.get(label) if facts else None
        if facts is not None and block_id is not None:
            try:
                return await self._gateway.fetch_block(block_id), facts
            except LettaNotFound:
                self._versions.agents.forget(self._agent_id)
        agent = await self._gateway.fetch_agent(self._agent_id)
        return rules.find(agent, label), self._versions.agents.learn(agent)


def holds(block: BlockView, head: Head) -> bool:
    """Say whether the block holds exactly its last version."""
    return digest(block.value) == head.sha256


@asynccontextmanager
async def deadline(timeout_s: float, doing: str) -> AsyncIterator[asyncio.Timeout]:
    """Put one deadline over several requests; running out of it is an error with a sentence."""
    try:
        async with asyncio.timeout(timeout_s) as limit:
            yield limit
    except TimeoutError as error:
        raise LettaUnavailable(
            f"{doing} took longer than {timeout_s:g} s.",
            hint="Letta or the database is slow; nothing was changed.",
        ) from error
