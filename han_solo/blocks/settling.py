"""Bring a block and its last version into agreement, before anything else is done with it.

What Letta holds may differ from the last version for four reasons, each put right in its own way.
A write of ours was cut short: its intent is still open. Somebody wrote around us: the text was
never seen, and becomes a version. Letta went back to an older version, as its built-in memory tools
make it do: the last version is put back. Or both at once, an edit that was made on an older
version: it becomes a version, and what it undid is joined into it where that can be done by lines.
"""

from __future__ import annotations

from typing import Final

from .. import logs
from ..clock import Clock
from ..letta.views import BlockView
from . import merge
from .model import CARETAKER, OUTSIDE, Author, Event, EventKind, Origin, Rights, digest
from .operation import BlockGateway, Operation, Undone
from .records import Head, Text
from .versions import BlockVersions, HeldBlock
from .writing import VerifiedWriter

COMPARED_VERSIONS: Final = 8
"""Among so many of the newest is looked for the one that an outside edit was made on: as many as
are written during one turn, at most."""

_PAUSES_S: Final = (0.02, 0.05, 0.1, 0.2)

_log = logs.get("blocks")


class Settler:
    """Settles one agent's blocks."""

    def __init__(
        self,
        gateway: BlockGateway,
        versions: BlockVersions,
        writer: VerifiedWriter,
        *,
        agent_id: str,
        rights: Rights,
        clock: Clock,
    ) -> None:
        self._gateway = gateway
        self._versions = versions
        self._writer = writer
        self._agent_id = agent_id
        self._rights = rights
        self._clock = clock

    async def settle(
        self, held: HeldBlock, block: BlockView, head: Head | None, operation: Operation
    ) -> bool:
        """Take one step towards agreement.

        Args:
            held: the block's lock.
            block: the block as it was read since the lock is held.
            head: its last version.
            operation: gets an event for what was found.

        Returns:
            True when the block holds its last version and nothing is open. False when something was
            recorded: that has to be committed before the next step.
        """
        sha256 = digest(block.value)
        if head is not None and head.is_open:
            await self._close_intent(held, block, head, operation)
        elif head is None:
            await self._keep_first(held, block, operation)
        elif sha256 != head.sha256:
            older = await held.find_text(sha256)
            if older is not None:
                await self._put_back(held, block, head, older, operation)
            else:
                await self._adopt(held, block, head, operation)
        elif operation.undone is not None and operation.undone.theirs == head.number:
            await self._join(held, block, head, operation)
        else:
            return True
        return False

    async def _close_intent(
        self, held: HeldBlock, block: BlockView, head: Head, operation: Operation
    ) -> None:
        """Settle a write whose writer is gone; what it sent last may still be on its way."""
        intent = await held.load_open_intent()
        assert intent is not None, "only the holder of the lock closes intents"
        value, waited_s, pauses = block.value, 0.0, iter(_PAUSES_S)
        pause_s = _PAUSES_S[-1]
        while (
            value != intent.text.value and intent.age_s + waited_s < self._versions.settle_after_s
        ):
            pause_s = next(pauses, pause_s)
            await self._clock.sleep(pause_s)
            waited_s += pause_s
            value = (await self._gateway.fetch_block(block.id)).value
        if value == intent.text.value:
            number = await held.record(intent)
            self._note(
                operation,
                "settled",
                f"A write by {intent.text.author.name} was cut short after Letta had it: it is "
                f"version {number} now.",
                number,
            )
            return
        await held.abandon(intent)
        self._note(
            operation,
            "dropped",
            f"A write by {intent.text.author.name} was cut short before Letta had it: version "
            f"{head.number} stands.",
        )

    async def _keep_first(self, held: HeldBlock, block: BlockView, operation: Operation) -> None:
        if block.value == self._rights.seeds.get(block.label):
            text = self._text(block, block.value, CARETAKER, "seed", "The seed of the agent spec.")
        else:
            text = self._text(
                block, block.value, OUTSIDE, "adopted_outside", "Found in Letta at first sight."
            )
        number = await held.record_text(text)
        said = f"Every version is kept from here on; what it holds now is version {number}."
        self._note(operation, "first_seen", said, number)

    async def _put_back(
        self, held: HeldBlock, block: BlockView, head: Head, older: int, operation: Operation
    ) -> None:
        """Write the last version again, since Letta holds an older one."""
        last = await held.load_version(head.number)
        text = self._text(
            block,
            last.value,
            CARETAKER,
            "revert_repaired",
            f"Letta held version {older} again; version {head.number} was put back.",
            source=head.number,
        )
        number = await self._writer.put(held, block, head, text, operation, is_goal=False)
        if number is not None:
            undone = tuple(range(older + 1, head.number + 1))
            said = (
                f"Letta had gone back to version {older}; version {head.number} was put back, as "
                f"version {number}."
            )
            self._note(operation, "repaired", said, number, undone)

    async def _adopt(
        self, held: HeldBlock, block: BlockView, head: Head, operation: Operation
    ) -> None:
        """Make a text that was never a version one, and look on what it was made."""
        late = await held.find_abandoned(digest(block.value))
        if late is not None:
            base: int | None = late.base
            number = await held.record(late)
            said = (
                f"A write by {late.text.author.name} that had been given up came to Letta late: it "
                f"is version {number} now."
            )
            self._note(operation, "settled", said, number)
        else:
            texts = await held.load_texts(COMPARED_VERSIONS)
            base = merge.find_base(
                block.value, {number: _as_in(block.value, t) for number, t in texts.items()}
            )
            text = self._text(
                block,
                block.value,
                OUTSIDE,
                "adopted_outside",
                "Found in Letta, written around us.",
                source=base,
            )
            number = await held.record_text(text)
            said = f"Somebody wrote around us: what Letta holds is version {number} now."
            self._note(operation, "adopted", said, number)
        is_stale = base is not None and base < head.number
        operation.undone = Undone(base, head.number, number) if base and is_stale else None

    async def _join(
        self, held: HeldBlock, block: BlockView, head: Head, operation: Operation
    ) -> None:
        """Join an edit of an older version with what it undid, where they do not meet."""
        undone = operation.undone
        assert undone is not None
        base, ours = await held.load_version(undone.base), await held.load_version(undone.ours)
        joined = merge.merge(
            _as_in(block.value, base.value), _as_in(block.value, ours.value), block.value
        )
        made = f"Version {head.number} was made on version {undone.base} and lacked what came after"
        if joined == block.value:
            operation.undone = None
        elif joined is None or len(joined) > block.limit:
            operation.undone = None
            why = "both changed the same lines" if joined is None else "together they are too long"
            said = f"{made}; it stands, since {why}. Version {undone.ours} is in the history."
            self._note(operation, "overwritten", said, head.number, undone.versions)
        else:
            text = self._text(
                block, joined, CARETAKER, "merged", f"{made}; both were joined.", source=undone.ours
            )
            number = await self._writer.put(held, block, head, text, operation, is_goal=False)
            if number is not None:
                operation.undone = None
                said = f"{made}; both were joined as version {number}."
                self._note(operation, "merged", said, number, undone.versions)

    def _text(
        self,
        block: BlockView,
        value: str,
        author: Author,
        origin: Origin,
        reason: str,
        *,
        source: int | None = None,
    ) -> Text:
        return Text(
            block_id=block.id,
            label=block.label,
            agent_id=self._agent_id,
            value=value,
            author=author,
            reason=reason,
            origin=origin,
            source=source,
        )

    def _note(
        self,
        operation: Operation,
        kind: EventKind,
        said: str,
        version: int | None = None,
        undone: tuple[int, ...] = (),
    ) -> None:
        operation.events.append(Event(kind, said, version, undone))
        log = _log.warning if undone else _log.info
        log(f"block.{kind}", label=operation.label, version=version, undone=list(undone))


def _as_in(found: str, text: str) -> str:
    """Return the text as Letta's memory tools rewrite it: they turn every tab into blanks."""
    return text if "\t" in found else text.expandtabs()
