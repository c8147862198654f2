"""The verified write itself: intent, PATCH, read-back, version.

::

    intent committed -> PATCH -> read back -> version recorded, intent gone, lock given back

Wherever it breaks off, what is in Postgres tells the next one who holds the lock what to make of
what is in Letta: the intent's text there means that it landed, the last version's text that it did
not. So a version never stands for a text that did not land, and no text that landed is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from .. import logs
from ..clock import Clock
from ..errors import (
    DatabaseUnavailable,
    LettaConflict,
    LettaError,
    LettaUnavailable,
    LettaUnreachable,
    StoreError,
    WriteNotVerified,
    WriteUnsettled,
)
from ..letta.views import BlockView
from .model import digest
from .operation import BlockGateway, Landed, Operation
from .records import Head, Intent, Text
from .versions import BlockVersions, HeldBlock

FINISH_S: Final = 5.0
"""Seconds, beyond the deadline, to find out and record what a PATCH did that was sent before it."""

RECORD_AGAIN_S: Final = 3.0
"""Seconds in which a lost database may come back before the text is taken back out of Letta."""

_PAUSES_S: Final = (0.05, 0.1, 0.2, 0.5)

_log = logs.get("blocks")


class VerifiedWriter:
    """Puts texts into blocks whose lock the caller holds."""

    def __init__(self, gateway: BlockGateway, versions: BlockVersions, clock: Clock) -> None:
        self._gateway = gateway
        self._versions = versions
        self._clock = clock

    async def put(
        self,
        held: HeldBlock,
        block: BlockView,
        head: Head,
        text: Text,
        operation: Operation,
        *,
        is_goal: bool,
    ) -> int | None:
        """Write a text over the last version, read it back, and record it as the next one.

        Args:
            held: the block's lock.
            block: the block as it is, holding the last version.
            head: the last version.
            text: what to write.
            operation: gets ``landed`` from when on Letta holds the text.
            is_goal: whether the text is what was asked for, and not a repair.

        Returns:
            The version's number; None when another writer outside came in between, so that it has
            to be looked at anew.

        Raises:
            WriteNotVerified: Letta holds another text now.
            WriteUnsettled: whether it landed is not known.
            LettaError, DatabaseUnavailable: it did not land, nothing was changed.
        """
        intent = await self._open(held, head, text)
        operation.allow(FINISH_S)
        failure: LettaError | None = None
        answer: BlockView | None = None
        try:
            async with asyncio.timeout_at(operation.deadline_s):
                answer = await self._gateway.write_block(block.id, text.value)
        except LettaConflict:
            await self._drop(intent)
            operation.conflicts += 1
            return None
        except TimeoutError as error:
            failure = LettaUnavailable(f"Letta did not answer the write of {text.label!r} in time.")
            failure.__cause__ = error
        except LettaUnavailable as error:
            failure = error
        except LettaError:
            await self._drop(intent)
            raise
        if isinstance(failure, LettaUnreachable):
            await self._drop(intent)
            raise failure
        found = await self._read_back(block, text, failure)
        if found.value == text.value or (answer is not None and answer.value == text.value):
            # In the second case it landed, and was overwritten before it was read back.
            operation.landed = Landed(intent, block, is_goal)
            number = await held.record(intent)
            if found.value == text.value:
                return number
            operation.goal = (number, text) if is_goal else None
            operation.conflicts += 1
            return None
        raise await self._explain(intent, block, found, answered=answer is not None, of=failure)

    async def recover(self, landed: Landed, fault: Exception) -> int:
        """Record the version of a text that landed when the database was lost, or take it back.

        Returns:
            The version's number.

        Raises:
            DatabaseUnavailable: it stays away; Letta holds what it held before.
            WriteUnsettled: it stays away, and the text could not be taken back.
        """
        try:
            async with asyncio.timeout(RECORD_AGAIN_S):
                number = await self._record_again(landed)
        except TimeoutError:
            number = None
        if number is not None:
            return number
        text = landed.intent.text
        if await self._take_back(landed):
            raise DatabaseUnavailable(
                f"The core block {text.label!r} was not written: the database went away meanwhile, "
                "and the text was taken back out of Letta.",
                hint="The block is as it was. Try again when the database is back.",
            ) from fault
        raise WriteUnsettled(
            f"The core block {text.label!r} was written, but the database went away before its "
            "version could be recorded.",
            hint="Its intent is kept: the next access of the block settles it. Read the block "
            "before you write it again.",
        ) from fault

    async def _open(self, held: HeldBlock, head: Head, text: Text) -> Intent:
        """Commit the intent; nothing may be sent that was not announced just now."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            intent = await self._versions.open_intent(text, head.number)
        except DatabaseUnavailable as error:
            error.message = f"The core block {text.label!r} was not written. {error.message}"
            error.hint = "Nothing was changed; try again."
            raise
        spent_s = loop.time() - began_s
        if held.is_lost or spent_s > self._versions.settle_after_s / 2:
            await self._drop(intent)
            raise DatabaseUnavailable(
                f"The core block {text.label!r} was not written: the database was lost or too "
                "slow.",
                hint="Nothing was changed; try again.",
            )
        return intent

    async def _read_back(
        self, block: BlockView, text: Text, failure: LettaError | None
    ) -> BlockView:
        """Read the block after the PATCH, and go on trying for a while: everything hangs on it."""
        fault: LettaUnavailable | None = None
        try:
            async with asyncio.timeout(FINISH_S / 2):
                for pause_s in (*_PAUSES_S, *[_PAUSES_S[-1]] * 10):
                    try:
                        return await self._gateway.fetch_block(block.id)
                    except LettaUnavailable as error:
                        fault = error
                    await self._clock.sleep(pause_s)
        except TimeoutError:
            pass
        what = "no answer came" if failure else "Letta took it"
        raise WriteUnsettled(
            f"The core block {text.label!r} was sent to Letta, {what}, and it could not be read "
            "back: whether it was written is not known.",
            hint="Its intent is kept: the next access of the block settles it. Read the block "
            "before you write it again.",
        ) from (failure or fault)

    async def _explain(
        self,
        intent: Intent,
        block: BlockView,
        found: BlockView,
        *,
        answered: bool,
        of: LettaError | None,
    ) -> Exception:
        """Return the error for a read-back of another text, and close the intent if that is so."""
        text = intent.text
        unchanged = found.value == block.value
        if unchanged and of is not None and of.status_code is None:
            error = WriteUnsettled(
                f"Letta gave no answer to the write of the core block {text.label!r}; it holds "
                "what it held before.",
                hint="Should Letta carry it out late, the next access of the block settles it. "
                "Read the block before you write it again.",
            )
            error.__cause__ = of
            return error
        if unchanged and of is not None:  # Letta failed, and has ended its part by that
            await self._drop(intent)
            return of
        # A text that Letta altered is not ours: the next access adopts it as somebody else's.
        with contextlib.suppress(StoreError):
            await self._versions.abandon_intent(intent)
        how = "took the write and" if answered else "failed at the write and"
        refused = WriteNotVerified(
            f"Letta {how} holds another text in the core block {text.label!r} now "
            f"({len(found.value):,} characters, SHA-256 {digest(found.value)[:12]}, instead of "
            f"{len(text.value):,}, SHA-256 {text.sha256[:12]}).",
            expected_sha256=text.sha256,
            found_sha256=digest(found.value),
            hint="Read the block before you write it again.",
        )
        refused.__cause__ = of
        return refused

    async def _record_again(self, landed: Landed) -> int | None:
        intent = landed.intent
        for pause_s in (*_PAUSES_S, *[_PAUSES_S[-1]] * 10):
            try:
                async with self._versions.hold(intent.text.block_id, wait_s=RECORD_AGAIN_S) as held:
                    number = await held.find_recorded(intent)  # perhaps somebody settled it
                    if number is None:
                        found = await self._gateway.fetch_block(intent.text.block_id)
                        if found.value != intent.text.value:
                            return None
                        number = await held.record(intent)
            except DatabaseUnavailable:
                await self._clock.sleep(pause_s)
            except LettaError:
                return None
            else:
                _log.info("block.recorded_late", label=intent.text.label, version=number)
                return number
        return None

    async def _take_back(self, landed: Landed) -> bool:
        """Put back what the block held before, if it still holds the text; say whether it does."""
        block_id = landed.intent.text.block_id
        try:
            async with asyncio.timeout(FINISH_S):
                if (await self._gateway.fetch_block(block_id)).value != landed.intent.text.value:
                    return False
                with contextlib.suppress(LettaConflict, LettaUnavailable):  # the read-back tells
                    await self._gateway.write_block(block_id, landed.block.value)
                return (await self._gateway.fetch_block(block_id)).value == landed.block.value
        except (LettaError, TimeoutError):
            return False

    async def _drop(self, intent: Intent) -> None:
        """Forget an intent that did not land; where that fails it is settled as such later."""
        with contextlib.suppress(StoreError):
            await self._versions.drop_intent(intent)
