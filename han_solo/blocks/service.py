"""Core blocks of one agent: every write verified, every version kept.

Who calls: the block tools, the block commands, jobs, and the message discipline, which inspects the
blocks after each turn. A write costs three requests: one read, the write, and the read-back; the
first runs while the block's lock is taken. What is found in Letta is settled before anything is
written over it, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import logs
from ..clock import Clock
from ..errors import DatabaseUnavailable, LettaUnavailable
from ..letta.text import require_storable
from . import results, rules
from .model import Author, BlockWrite, Inspection, Origin, Rights
from .operation import BlockGateway, Operation
from .reading import BlockReader
from .records import Text
from .rounds import Look, Rounds, deadline, holds
from .settling import Settler
from .versions import BlockVersions
from .writing import VerifiedWriter

_log = logs.get("blocks")


class Blocks(BlockReader):
    """The core blocks of one agent, for one author.

    Args:
        gateway: Letta.
        versions: the versions, one object a process.
        agent_id: Letta's id of the agent.
        author: who reads and writes here.
        rights: who may write which block, by the agent spec.
        timeout_s: what one call may take; a write under way gets some seconds more to end well.
        clock: waits between tries.
        allow_builtins: write although the agent holds Letta's memory tools, which revert writes.
    """

    def __init__(
        self,
        gateway: BlockGateway,
        versions: BlockVersions,
        agent_id: str,
        author: Author,
        *,
        rights: Rights | None = None,
        timeout_s: float = 10.0,
        clock: Clock | None = None,
        allow_builtins: bool = False,
    ) -> None:
        super().__init__(gateway, versions, agent_id, rights=rights, timeout_s=timeout_s)
        self._author = author
        self._allow_builtins = allow_builtins
        clock = clock or Clock()
        self._rounds = Rounds(gateway, versions, agent_id, timeout_s=timeout_s, clock=clock)
        self._writer = VerifiedWriter(gateway, versions, clock)
        self._settler = Settler(
            gateway,
            versions,
            self._writer,
            agent_id=agent_id,
            rights=self._rights,
            clock=clock,
        )

    async def write(
        self, label: str, value: str, *, reason: str = "", expected_version: int | None = None
    ) -> BlockWrite:
        """Replace a block's text, read it back, and keep it as a version.

        Writing what is there already writes nothing and returns the present version.

        Args:
            label: which block.
            value: the whole new text.
            reason: why, for the history.
            expected_version: write only if this is the last version still.

        Raises:
            BlockRefused: before anything is written; ``reason`` says why.
            UsageError: a character that can not be stored.
            BlockBusy: other writers had it all the time.
            WriteNotVerified: another text was read back.
            WriteUnsettled: whether it landed is not known; the next access settles it.
            DatabaseUnavailable, LettaError: nothing was changed.
        """
        require_storable(value, f"The value for the block {label!r}")
        return await self._change(
            label, lambda _: value, "write", reason, expected_version=expected_version
        )

    async def append(
        self, label: str, text: str, *, reason: str = "", expected_version: int | None = None
    ) -> BlockWrite:
        """Add text at the end of a block, on a line of its own.

        A line end is put before it unless the block is empty or ends with one; none is put after
        it. Appends of several writers are all kept. Raises as ``write`` does.
        """
        require_storable(text, f"The text for the block {label!r}")
        return await self._change(
            label, rules.appending(label, text), "write", reason, expected_version=expected_version
        )

    async def replace(
        self,
        label: str,
        old: str,
        new: str,
        *,
        reason: str = "",
        expected_version: int | None = None,
    ) -> BlockWrite:
        """Replace a passage that occurs exactly once. Raises as ``write`` does."""
        require_storable(new, f"The text for the block {label!r}")
        return await self._change(
            label,
            rules.replacing(label, old, new),
            "write",
            reason,
            expected_version=expected_version,
        )

    async def restore(
        self,
        label: str,
        number: int,
        *,
        reason: str = "",
        expected_version: int | None = None,
    ) -> BlockWrite:
        """Write the text of an older version again, as a new version. Raises as ``write`` does."""
        version = await self.version(label, number)
        return await self._change(
            label,
            lambda _: version.value,
            "restored",
            reason or f"Version {number} was restored.",
            expected_version=expected_version,
            source=number,
        )

    async def inspect(self, label: str | None = None) -> tuple[Inspection, ...]:
        """Compare blocks with their last versions, and put right what differs.

        Writes that were cut short are settled, outside edits become versions, and reverts are put
        right. A block that is as recorded costs nothing beyond the one read of all.

        Args:
            label: one block; all of them when left out.
        """
        async with deadline(self._timeout_s, "Reading the blocks"):
            agent = await self._read_agent()
            blocks = agent.blocks if label is None else (rules.find(agent, label),)
            heads = await self._versions.load_heads([block.id for block in blocks])
        found = [
            results.inspected(block, head, ())
            if (head := heads.get(block.id)) and not head.is_open and holds(block, head)
            else await self._inspect(block.label)
            for block in sorted(blocks, key=lambda block: block.label)
        ]
        return tuple(found)

    def require_agents_own(self, label: str) -> None:
        """Refuse a block that the spec does not let the agent write.

        Raises:
            BlockRefused: the agent is not among its writers.
        """
        rules.require_writer(label, Author("agent", "agent"), self._rights)

    async def _change(
        self,
        label: str,
        edit: Callable[[str], str],
        origin: Origin,
        reason: str,
        *,
        expected_version: int | None,
        source: int | None = None,
    ) -> BlockWrite:
        rules.require_reason(reason)

        async def step(look: Look, operation: Operation) -> BlockWrite | None:
            if operation.goal is None:
                rules.require_writer(label, self._author, self._rights)
                rules.require_lasting(look.agent, look.block, allow_builtins=self._allow_builtins)
            if not await self._settler.settle(look.held, look.block, look.head, operation):
                return None
            assert look.head is not None
            if operation.goal is not None:
                return results.overwritten(look, operation)
            rules.require_version(label, look.head.number, expected_version)
            value = edit(look.block.value)
            if value == look.block.value:
                return results.written(
                    look.block, value, look.head.number, operation, changed=False
                )
            rules.require_room(look.block, value)
            text = Text(
                block_id=look.block.id,
                label=label,
                agent_id=self._agent_id,
                value=value,
                author=self._author,
                reason=reason,
                origin=origin,
                source=source,
            )
            number = await self._writer.put(
                look.held, look.block, look.head, text, operation, is_goal=True
            )
            if number is None:
                return None
            return results.written(look.block, value, number, operation, changed=True)

        doing = f"Writing the block {label!r}"
        operation = Operation(label)
        try:
            written = await self._rounds.run(operation, step, doing)
        except (DatabaseUnavailable, LettaUnavailable) as error:
            landed = operation.landed
            if landed is None or not landed.is_goal:
                raise
            number = await self._writer.recover(landed, error)
            text = landed.intent.text
            written = results.written(landed.block, text.value, number, operation, changed=True)
        if written.changed:
            _log.info(
                "block.written",
                label=label,
                version=written.version,
                chars=written.length,
                sha256=written.sha256,
                author=self._author.name,
            )
        return written

    async def _inspect(self, label: str) -> Inspection:
        async def step(look: Look, operation: Operation) -> Inspection | None:
            if not await self._settler.settle(look.held, look.block, look.head, operation):
                return None
            assert look.head is not None
            return results.inspected(look.block, look.head, tuple(operation.events))

        return await self._rounds.run(Operation(label), step, f"Inspecting the block {label!r}")
