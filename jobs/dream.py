"""The dream: at night the agent looks back at the day and writes the brief for the next session.

It counts as done only when the brief is there: a verified version of ``pending_thoughts`` that was
written in this turn, bears the day's date and is no copy. The message is sent once. Its turn has an
id that follows from the day, so a run that was killed or gave up waiting is found again by the next
one, which then asks Letta what came of it and sends nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from han_solo import Daily, Evidence, HanSoloError, JobContext, job
from han_solo.blocks.model import VersionEntry
from han_solo.errors import LettaUnavailable, NotFound, TurnUnknown
from han_solo.job_context import AgentParts
from han_solo.turns.model import FoundTurn
from han_solo.turns.silence import SilentTurn

from ._dream_prompt import BRIEF, Day, compose, rehearse
from ._dream_verify import Written, find_fault

TURN_S: Final = 300.0
WARM_S: Final = 300.0
"""A Letta that sleeps (a free tier) takes some minutes to wake."""

WAIT_S: Final = 300.0
"""How long a turn whose answer did not come in time may still run."""

_POLL_S: Final = 2.0
_MAX_TURNS: Final = 20
_REHEARSAL: Final = "rehearsal"


class DreamFailed(HanSoloError):
    """The turn took place, and what it should leave is not there. It is not repeated by itself."""


@job(when=Daily("03:30"), timeout_s=1200)
async def dream(context: JobContext) -> Evidence:
    """Have the agent write the brief of the day, and see to it that it is there."""
    async with context.open_agent("dream", message_timeout_s=TURN_S) as agent:
        waited_s = await _warm(context, agent)
        turn_id, found = await _find_turn(context, agent)
        cause: str | None = None
        if found is None:
            day = await _load_day(context, agent)
            cause = await _send(context, agent, day, turn_id)
            found = await _wait_for_end(context, agent, turn_id)
        evidence = await _verify(context, agent, found, cause)
        return {**evidence, "turn_id": str(turn_id), "letta_waited_s": round(waited_s)}


async def _warm(context: JobContext, agent: AgentParts) -> float:
    """Wait until Letta answers; returns how long that took.

    Raises:
        LettaUnavailable: it did not within its time; nothing was sent.
    """
    began = context.now
    while True:
        try:
            await agent.letta.health()
            await agent.letta.fetch_agent(agent.agent_id)
        except LettaUnavailable as error:
            waited_s = (context.now - began).total_seconds()
            if waited_s >= WARM_S:
                raise LettaUnavailable(
                    f"Letta did not answer for {waited_s:.0f} s, so the agent was not asked: "
                    f"{error.message}",
                    hint="Nothing was sent; it is tried again later.",
                ) from error
            context.tell(f"Letta does not answer yet ({waited_s:.0f} s of {WARM_S:.0f} s).")
            await context.clock.sleep(_POLL_S)
        else:
            return (context.now - began).total_seconds()


async def _find_turn(context: JobContext, agent: AgentParts) -> tuple[uuid.UUID, FoundTurn | None]:
    """Return the id for this run's turn, and the turn if an earlier run has sent it already.

    A turn that Letta never took leaves its number to the past: the next one has a new id.
    """
    for number in range(_MAX_TURNS):
        # An extra run, which a person asked for, is a turn of its own.
        extra = f" extra {context.run.id}" if context.run.is_extra else ""
        name = f"han-solo dream {agent.agent_id} {context.run.period} {number}{extra}"
        turn_id = uuid.uuid5(uuid.NAMESPACE_OID, name)
        try:
            found = await agent.turns.find(turn_id)
        except NotFound:
            return turn_id, None
        if found.state == "not_sent":
            continue
        if context.run.started_by == "person" and found.state in {"answered", "silent"}:
            continue  # somebody looked at what came of it, and asks anew
        context.tell("An earlier run has asked the agent already; its turn is looked at.")
        return turn_id, await _wait_for_end(context, agent, turn_id)
    raise DreamFailed(f"The agent was asked {_MAX_TURNS} times for {context.run.period}.")


async def _load_day(context: JobContext, agent: AgentParts) -> Day:
    until = context.run.due_at
    since = until - timedelta(days=1)
    view = await agent.letta.fetch_agent(agent.agent_id)
    brief = view.block(BRIEF)
    if brief is None:
        raise DreamFailed(
            f"The agent has no block {BRIEF}, where the brief belongs.",
            hint="Declare it in the agent spec and run sync-tools.",
        )
    portraits = [
        block.label
        for block in agent.spec.blocks
        if block.label.endswith("_portrait_forming") and "dream" in block.writers
    ]
    return Day(
        name=context.run.period,
        messages=await agent.letta.fetch_spoken(agent.agent_id, since, until),
        last_brief=brief.value,
        notes=await context.load_notes(since, until),
        remembered=await context.load_remembered(since, until),
        portraits=portraits,
        person=agent.spec.person,
    )


async def _send(context: JobContext, agent: AgentParts, day: Day, turn_id: uuid.UUID) -> str | None:
    """Send the message once; returns the cause when the turn was silent.

    Raises:
        AgentBusy, LettaError: nothing was sent; it may be tried again.
    """
    message = compose(day)
    handle = str((await agent.letta.fetch_agent(agent.agent_id)).llm_config.get("handle"))
    if handle.rpartition("/")[2] == _REHEARSAL:
        message += rehearse(day)
    context.tell(f"The agent is asked about {day.name} ({len(day.messages)} messages).")
    try:
        await agent.turns.send(message, sender="dream", turn_id=turn_id)
    except SilentTurn as silent:
        return silent.cause
    except TurnUnknown:
        context.tell("No answer came in time; Letta is asked what became of the turn.")
    return None


async def _wait_for_end(context: JobContext, agent: AgentParts, turn_id: uuid.UUID) -> FoundTurn:
    """Wait until a turn is over, by its record.

    Raises:
        DreamFailed: it runs on and on.
        LettaUnavailable: Letta never took it; it may be tried again.
    """
    began = context.now
    while True:
        found = await agent.turns.find(turn_id)
        if found.state == "not_sent":
            raise LettaUnavailable(
                "Letta never took the message.", hint="Nothing was delivered; it is tried again."
            )
        if found.state not in {"running", "waiting"}:
            return found
        if (context.now - began).total_seconds() >= WAIT_S:
            raise DreamFailed(
                f"The turn still runs {WAIT_S:.0f} s after its answer was given up on.",
                hint="Letta's run of it tells later; `han-solo jobs run dream` looks again.",
            )
        await context.clock.sleep(_POLL_S)


async def _verify(
    context: JobContext, agent: AgentParts, found: FoundTurn, cause: str | None
) -> Mapping[str, object]:
    """Read what was written since the turn began, and judge it.

    Raises:
        DreamFailed: it is not what the dream should leave.
    """
    started_at = found.record.started_at or context.run.started_at
    await agent.blocks.inspect()  # what was written around us becomes a version first
    written = await _load_written(agent, started_at)
    allowed = {block.label for block in agent.spec.blocks if "dream" in block.writers}
    fault = find_fault(context.run.period, written, allowed)
    cause = cause or found.record.cause
    if fault is not None:
        raise DreamFailed(f"{fault}{_explain(found, cause)}.")
    brief = next(each for each in written if each.label == BRIEF).new[0]
    return {
        "brief_version": brief.number,
        "brief_chars": len(brief.value),
        "blocks": {each.label: each.new[0].number for each in written},
        "silent": cause,
    }


async def _load_written(agent: AgentParts, since: datetime) -> list[Written]:
    written = []
    for state in await agent.blocks.list():
        entries = await agent.blocks.history(state.label, limit=50)
        new = [entry for entry in entries if entry.created_at >= since and _is_of_turn(entry)]
        if not new:
            continue
        older = next((entry for entry in entries if entry.number < new[-1].number), None)
        written.append(
            Written(
                state.label,
                [await agent.blocks.version(state.label, entry.number) for entry in new],
                await agent.blocks.version(state.label, older.number) if older else None,
            )
        )
    return written


def _is_of_turn(entry: VersionEntry) -> bool:
    """Say whether a version is the agent's, or was found written around us.

    What others wrote meanwhile is theirs, and a block that is seen for the first time was not
    written by anybody.
    """
    if entry.origin == "write":
        return entry.author_kind == "agent"
    return entry.origin in {"adopted_outside", "merged"} and entry.number > 1


def _explain(found: FoundTurn, cause: str | None) -> str:
    """Say what the turn itself tells about why."""
    said: list[str] = []
    if cause is not None:
        said.append(f"the turn was silent ({cause})")
    returns = found.turn.tool_returns if found.turn else ()
    failed = sorted({each.name for each in returns if each.status != "success"})
    if failed:
        text = next(each.text for each in returns if each.status != "success")
        said.append(f"{', '.join(failed)} failed: {text[:200]}")
    elif found.turn is not None and not found.turn.tool_calls:
        said.append("it called no tool")
    return f": {'; '.join(said)}" if said else ""
