"""How steps of a plan are taken: one by one or several at once, read back, and then journaled.

``apply`` knows what each step does; this knows that none is noted as done before its effect was
read back, and that the first failure ends the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from ..errors import HanSoloError
from .journal import StepRecord
from .plan import Plan, Step, kind_of, target_of

MAX_CONCURRENT: Final = 8
"""Attachments under way at once: Letta opens a database connection for each request."""

NoteSteps = Callable[[Sequence[StepRecord]], Awaitable[None]]
"""Writes what became of steps into the journal."""

Check = Callable[[Step], HanSoloError | None]
"""Returns the fault when what was read back does not show the step."""

Taken = tuple[Step, dict[str, object]]
"""A step that was accepted, and what the journal is to say about it."""


class Steps:
    """The steps of one plan, each noted at its place in it."""

    def __init__(self, plan: Plan, note: NoteSteps) -> None:
        self._note = note
        self._positions = {id(step): position for position, step in enumerate(plan.steps)}

    async def attempt(
        self,
        step: Step,
        call: Awaitable[dict[str, object]],
        taken: list[Taken],
    ) -> None:
        """Take one step; a failure is noted, after what was taken before it in this stage."""
        try:
            taken.append((step, await call))
        except HanSoloError as error:
            done = [self._record(step, detail) for step, detail in taken]
            await self._note([*done, self._record(step, {}, error)])
            raise

    async def all_at_once(
        self,
        steps: Sequence[Step],
        take: Callable[[Step], Awaitable[dict[str, object]]],
        read: Callable[[], Awaitable[None]],
        check: Check,
    ) -> None:
        """Take steps that do not need one another, several at a time; then settle them.

        After the first failure no further ones are begun.
        """
        if not steps:
            return
        gate = asyncio.Semaphore(MAX_CONCURRENT)
        failures: dict[int, HanSoloError] = {}

        async def take_one(step: Step) -> Taken | None:
            async with gate:
                if failures:
                    return None
                try:
                    return step, await take(step)
                except HanSoloError as error:
                    failures[id(step)] = error
                    return step, {}

        begun = await asyncio.gather(*(take_one(step) for step in steps))
        await self.settle(
            [one for one in begun if one],
            read,
            lambda step: failures.get(id(step)) or check(step),
            next(iter(failures.values()), None),
        )

    async def settle(
        self,
        taken: Sequence[Taken],
        read: Callable[[], Awaitable[None]] | None,
        check: Check,
        first: HanSoloError | None = None,
    ) -> None:
        """Read back, note each step by what that shows, and raise the first fault."""
        if not taken:
            return
        faults: list[HanSoloError | None]
        try:
            if read:
                await read()
            faults = [check(step) for step, _ in taken]
        except HanSoloError as error:  # not read back is not done
            faults = [error for _ in taken]
        await self._note(
            [
                self._record(step, detail, fault)
                for (step, detail), fault in zip(taken, faults, strict=True)
            ]
        )
        fault = first or next((fault for fault in faults if fault), None)
        if fault:
            raise fault

    def _record(
        self, step: Step, detail: dict[str, object], fault: HanSoloError | None = None
    ) -> StepRecord:
        return StepRecord(
            position=self._positions[id(step)],
            kind=kind_of(step),
            target=target_of(step),
            outcome="failed" if fault else "done",
            detail={**detail, "error": str(fault)} if fault else detail,
        )
