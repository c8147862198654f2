"""The gateway's part for turns: one message, sent once, and what Letta kept of its run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from urllib.parse import quote
from uuid import UUID

from han_solo.errors import UsageError
from han_solo.serving import refuse_callback

from . import history, runs, text, turns
from .agents import AgentCalls
from .floor import Floor


class MessageCalls(AgentCalls):
    """Sends messages, for who holds the floor, and reads runs."""

    async def send_message(
        self, floor: Floor, message: str, *, max_steps: int | None = None
    ) -> turns.Turn:
        """Send one message as the user and wait for the whole turn.

        Sent once, whatever happens: after a timeout the turn may still run, and a second message
        would make the agent hear it twice. A turn may be silent; ``Turn`` keeps what tells why.

        Args:
            floor: the right to do so, held by the caller; it names the agent.
            message: what the user says.
            max_steps: calls of the model, at most; at 0 Letta would drop the message and say 200.

        Raises:
            AgentBusy: the floor is no longer held; nothing was sent.
            CallbackRefused: from inside a tool call that an agent waits for, or while this one
                waits for a call that is served here; nothing was sent.
            ApprovalPending: the agent waits for an approval and took no message.
            ModelFailed: the model failed. Whether the message was kept, its run tells.
        """
        text.require_storable(message, "The message")
        if max_steps is not None and max_steps < 1:
            raise UsageError(
                f"max_steps is {max_steps}; a turn takes one step at least.",
                hint="Give 1 or more, or leave it out for Letta's own 50.",
            )
        refuse_callback(floor.agent_id)
        floor.require_held()
        answer = await self._of_agent(
            floor.agent_id,
            self._link.message(
                f"waiting for a turn of the agent {floor.agent_id}",
                f"/v1/agents/{quote(floor.agent_id, safe='')}/messages",
                runs.build_message(message, floor.turn_id, max_steps),
            ),
        )
        return turns.parse_turn(answer)

    async def fetch_spoken(
        self, agent_id: str, since: datetime, until: datetime
    ) -> tuple[history.Spoken, ...]:
        """Fetch what people and the agent said in ``[since, until)``, oldest first."""
        return await history.fetch_spoken(self._link, agent_id, since, until)

    async def fetch_active_runs(self, agent_id: str) -> tuple[runs.RunView, ...]:
        """Fetch the runs of the agent that are not over, whoever began them.

        One that Letta was killed in stays among them for ever.
        """
        return await runs.fetch_runs(self._link, agent_id, active=True)

    async def fetch_last_runs(self, agent_id: str) -> tuple[runs.RunView, ...]:
        """Fetch the agent's last runs, newest first, whoever began them."""
        return await runs.fetch_runs(self._link, agent_id, active=False)

    async def find_runs(
        self, agent_id: str, turn_ids: Collection[UUID]
    ) -> Mapping[UUID, runs.RunView]:
        """Find the runs of turns that were sent from here; one that Letta never took is left out.

        A server that was frozen when a message was sent may still take it later.
        """
        found = await runs.fetch_runs(self._link, agent_id, active=False)
        return {run.turn_id: run for run in found if run.turn_id in turn_ids and run.turn_id}

    async def fetch_kept(self, run: runs.RunView) -> runs.KeptTurn:
        """Fetch what Letta kept of a run: the turn, as its answer would have been."""
        return await runs.fetch_kept(self._link, run)

    async def fetch_last_activity(self, run: runs.RunView) -> datetime:
        """Return when the run last did something."""
        return await runs.fetch_last_activity(self._link, run)
