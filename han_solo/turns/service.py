"""Messages to the agent: one turn at a time, paced, never sent twice, never an empty success.

Who calls: whoever has something to say to the agent (a job, the bridge, `up --check`). A turn ends
in a ``Reply``, in a ``SilentTurn`` with its cause, or in a ``TurnUnknown`` that must not be sent
again; ``find`` says later what came of it. Each turn leaves a row, and after each the blocks are
looked at, since Letta's own memory tools write old text back during a turn.

Two things keep turns apart. The floor (``floor.py``) orders our own senders. Letta's runs tell of
the rest: a turn whose sender died or gave up waiting, and turns that others began.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from .. import logs
from ..clock import Clock
from ..errors import AgentBusy, DatabaseUnavailable, HanSoloError, LettaError, NotFound
from ..letta.runs import RunView
from ..serving import refuse_callback
from ..store.database import Connection, Database
from . import records
from .floor import HeldFloor, build_busy, deadline_in, hold_floor, rest
from .gateway import MessageGateway
from .model import Ending, FoundTurn, Reply, TurnRecord
from .settling import Settler, judge

AfterTurn = Callable[[], Awaitable[Sequence[str]]]
"""Looks at the agent's blocks and returns the labels of those whose text had been put back to an
older one."""

GAP_S: Final = 0.5
WAIT_S: Final = 120.0
"""Defaults of the settings HAN_SOLO_MESSAGE_GAP_S and HAN_SOLO_MESSAGE_WAIT_S, which say why."""

QUIET_POLL_S: Final = 0.5
"""How often Letta is asked whether a turn that is not ours has ended."""

_log = logs.get("turns")


class Turns:
    """The turns of one agent."""

    def __init__(
        self,
        db: Database,
        gateway: MessageGateway,
        agent_id: str,
        *,
        gap_s: float = GAP_S,
        wait_s: float = WAIT_S,
        after_turn: AfterTurn | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Bind the parts.

        Args:
            db: holds the queue and the rows.
            gateway: reaches Letta.
            agent_id: the agent.
            gap_s: seconds between the end of one turn and the beginning of the next, at least.
            wait_s: seconds to wait for the agent while others have it, at most.
            after_turn: looks for blocks that a turn put back to older text.
            clock: waits.
        """
        self._db = db
        self._gateway = gateway
        self._agent_id = agent_id
        self._gap_s = gap_s
        self._wait_s = wait_s
        self._after_turn = after_turn
        self._clock = clock or Clock()
        self._settler = Settler(gateway, agent_id, self._clock)

    async def send(
        self,
        message: str,
        *,
        sender: str,
        max_steps: int | None = None,
        wait_s: float | None = None,
        turn_id: UUID | None = None,
    ) -> Reply:
        """Send one message and wait for the answer.

        Args:
            message: what the user says.
            sender: who sends it, by the name of the principal or the job.
            max_steps: calls of the model, at most; Letta's own limit is 50.
            wait_s: replaces the wait for the agent while others have it.
            turn_id: an id chosen beforehand by a caller that wants to ask for the turn after a
                crash of its own; used once.

        Raises:
            AgentBusy: others have the agent; nothing was sent.
            CallbackRefused: from inside a tool call that an agent waits for; nothing was sent.
            SilentTurn: the agent said nothing; ``cause`` says why.
            TurnUnknown: no answer came and the turn may still run: ask ``find``, never send again.
            LettaError: Letta is away or refused; nothing was sent.
            DatabaseUnavailable: nothing was sent.
        """
        refuse_callback()  # before it waits for a floor that its own turn may hold
        turn_id = turn_id or uuid.uuid4()
        deadline = deadline_in(self._clock, self._wait_s if wait_s is None else wait_s)
        began = time.monotonic()
        async with hold_floor(
            self._db, self._agent_id, turn_id, sender, clock=self._clock, deadline=deadline
        ) as floor:
            await self._wait_for_quiet(floor, deadline)
            await rest(floor.connection, self._agent_id, self._gap_s, self._clock)
            started_at = await records.QUERIES.begin_turn(floor.connection, turn_id=turn_id)
            ending, failure = await self._take_turn(floor, message, max_steps)
            reverted = await self._look_for_reverts(ending)
            ended_at = await self._note_end(floor, ending, reverted)
        _log.info(
            "turn.ended",
            agent_id=self._agent_id,
            turn_id=str(turn_id),
            sender=sender,
            outcome=ending.outcome,
            cause=ending.cause,
            steps=ending.turn.steps if ending.turn else None,
            reverted=list(reverted) if reverted else None,
            duration_ms=round((time.monotonic() - began) * 1000),
        )
        if failure is not None:
            raise failure
        assert ending.turn is not None
        return Reply(
            turn_id=turn_id,
            agent_id=self._agent_id,
            text=ending.turn.assistant_text or "",
            turn=ending.turn,
            cause=ending.cause,
            reverted=reverted,
            started_at=started_at,
            ended_at=ended_at,
        )

    async def find(self, turn_id: UUID) -> FoundTurn:
        """Find out what came of a turn that was sent from here, by anyone.

        Raises:
            NotFound: no turn of that id.
            LettaError: Letta, which alone knows, does not say.
        """
        record = await self._load(turn_id)
        if record.is_settled:
            return await self._describe(record)
        if record.sender_lives:
            return FoundTurn("running" if record.started_at else "waiting", record)
        async with self._db.connection() as connection:
            if record.started_at is None:
                await records.QUERIES.drop_dead_waiters(connection, agent_id=self._agent_id)
            else:
                unsettled = await records.load_unsettled(connection, self._agent_id)
                await self._settler.settle(
                    connection, {id_: age for id_, age in unsettled.items() if id_ == turn_id}
                )
        return await self._describe(await self._load(turn_id))

    async def list(self, *, limit_rows: int = 20) -> tuple[TurnRecord, ...]:
        """Return the last turns of the agent, newest first."""
        return await records.load_turns(self._db, self._agent_id, limit_rows)

    # Before a turn

    async def _wait_for_quiet(self, floor: HeldFloor, deadline: datetime) -> None:
        """Wait until Letta runs no turn of the agent, and settle those nobody waited for.

        Raises:
            AgentBusy: one runs on past the deadline.
        """
        while True:
            unsettled = await records.load_unsettled(floor.connection, self._agent_id)
            open_still = await self._settler.settle(floor.connection, unsettled)
            running = await self._settler.find_running()
            if not running and not open_still:
                return
            if self._clock.now() >= deadline:
                raise await self._build_busy(floor.connection, floor.turn_id, running)
            await self._clock.sleep(QUIET_POLL_S)

    async def _build_busy(
        self, connection: Connection, turn_id: UUID, running: Sequence[RunView]
    ) -> AgentBusy:
        if not running:
            sentence = (
                f"A turn of the agent {self._agent_id} was cut short a moment ago, and Letta may "
                "still take it."
            )
            return await build_busy(connection, self._agent_id, turn_id, sentence=sentence)
        run = running[0]
        whose = "that was given up on here" if run.turn_id else "that han-solo did not begin"
        return AgentBusy(
            f"Letta is in a turn of the agent {self._agent_id} {whose}, since "
            f"{run.created_at:%H:%M:%S} UTC ({run.id}).",
            agent_id=self._agent_id,
            since=run.created_at,
            hint="Nothing was sent. Wait for it, or cancel that run in Letta; one that stands "
            "still is taken for dead after some minutes.",
        )

    # The turn

    async def _take_turn(
        self, floor: HeldFloor, message: str, max_steps: int | None
    ) -> tuple[Ending, HanSoloError | None]:
        """Send the message; return how the turn ended, and the error to raise if it went wrong."""
        try:
            turn = await floor.attend(
                self._gateway.send_message(floor, message, max_steps=max_steps)
            )
        except LettaError as error:
            return await self._settler.explain(floor.turn_id, error)
        except HanSoloError as error:
            return Ending("not_sent"), error
        ending = judge(turn, is_kept=turn.steps > 0)
        if ending.run_id is None:  # no message in it that would name the run
            ending = replace(ending, run_id=await self._settler.find_run_id(floor.turn_id))
        return ending, self._settler.build_silent(floor.turn_id, ending)

    # After a turn

    async def _look_for_reverts(self, ending: Ending) -> tuple[str, ...] | None:
        if self._after_turn is None or ending.outcome in {"unknown", "not_sent"}:
            return None
        try:
            return tuple(await self._after_turn())
        except HanSoloError as error:  # the answer is there; the next look finds them too
            _log.warning("turn.blocks_not_inspected", agent_id=self._agent_id, reason=str(error))
            return None

    async def _note_end(
        self, floor: HeldFloor, ending: Ending, reverted: Sequence[str] | None
    ) -> datetime | None:
        try:
            async with self._db.connection() as connection:
                return await records.end_turn(connection, floor.turn_id, ending, reverted)
        except DatabaseUnavailable as error:  # the answer is there; the next sender settles the row
            _log.warning("turn.end_not_noted", agent_id=self._agent_id, reason=str(error))
            return None

    # Finding

    async def _load(self, turn_id: UUID) -> TurnRecord:
        record = await records.load_turn(self._db, turn_id)
        if record is None or record.agent_id != self._agent_id:
            raise NotFound(f"There is no turn {turn_id} of the agent {self._agent_id}.")
        return record

    async def _describe(self, record: TurnRecord) -> FoundTurn:
        if record.outcome is None or record.outcome == "unknown":
            return FoundTurn("running", record)
        if record.run_id is None:
            return FoundTurn(record.outcome, record)
        run = await self._settler.find_run(record.turn_id)
        turn = (await self._gateway.fetch_kept(run)).turn if run else None
        return FoundTurn(record.outcome, record, turn)
