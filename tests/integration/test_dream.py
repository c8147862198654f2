"""The dream on the real Letta through the real bridge: done only when the brief is there."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from han_solo.clock import Clock
from han_solo.daemon.jobs import run_job
from han_solo.declare import JobSpec
from han_solo.loader import load_registry
from han_solo.runs.model import Finished, JobRun
from han_solo.runs.periods import find_period
from tests.integration.daemon_fixtures import SPEC, Installation, open_installation
from tests.integration.job_fixtures import open_jobs

BLOCKS = """
[[blocks]]
label = "pending_thoughts"
limit = 8000
seed = "No session has taken place yet."
writers = ["agent", "operator", "dream"]

[[blocks]]
label = "scott_portrait_forming"
limit = 8000
seed = "The name is Scott."
writers = ["agent", "operator", "dream"]

[[blocks]]
label = "ren_portrait_forming"
limit = 8000
seed = "I am new."
writers = ["agent", "operator", "dream"]

[[blocks]]
label = "project_state"
limit = 8000
seed = "Nothing yet."
writers = ["agent", "operator"]
"""

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


class Fast(Clock):
    """The real clock, whose pauses are short."""

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(min(delay_s, 0.1))


@dataclass
class Night:
    """One installation, and the dream of one day in it."""

    place: Installation
    services: Any
    spec: JobSpec
    module: Any
    patch: pytest.MonkeyPatch

    @property
    def today(self) -> str:
        return find_period(self.spec.when, datetime.now(UTC), self.services.zone).name

    async def run(self, **options: Any) -> Any:
        return await run_job(self.services, self.spec, started_by="schedule", **options)

    async def finish(self, **options: Any) -> JobRun:
        result = await self.run(**options)
        assert isinstance(result, Finished), result
        return result.run

    def answer(self, *steps: Mapping[str, Any]) -> None:
        """Have the rehearsal model do this instead of writing a brief."""
        told = f"\n\n```rehearsal\n{json.dumps(list(steps))}\n```"
        self.patch.setattr(self.module, "rehearse", lambda _day: told)

    def brief(self, **changes: str) -> str:
        parts = {"head": f"Brief of {self.today}", "Decisions": "To ship on Friday, not before."}
        parts |= {"Open threads": "Who writes the notes?", "Next": "Ask Scott about the notes."}
        parts |= changes
        return "\n\n".join(
            f"{name}\n{text}" if name != "head" else text for name, text in parts.items()
        )

    async def block(self, label: str) -> str:
        found = (await self.place.gateway.fetch_agent(self.place.agent_id)).block(label)
        assert found
        return found.value

    async def times_begun(self) -> bool:
        found: int = await self.place.db.fetchval(
            "SELECT count(*) FROM han_solo.turns WHERE started_at IS NOT NULL"
        )
        runs = await self.place.gateway.fetch_last_runs(self.place.agent_id)
        return found > 0 and len(runs) > 0

    async def times_asked(self) -> int:
        spoken = await self.place.gateway.fetch_spoken(
            self.place.agent_id, NOON - timedelta(days=400), NOON + timedelta(days=40_000)
        )
        return sum("It is the end of" in message.text for message in spoken)


@pytest.fixture
async def night(
    tmp_path: Path,
    letta_server: Any,
    letta_actor: Mapping[str, str],
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Night]:
    async with contextlib.AsyncExitStack() as stack:
        place = await stack.enter_async_context(
            open_installation(
                tmp_path, letta_server, letta_actor, database_url, spec_text=SPEC + BLOCKS
            )
        )
        services = await stack.enter_async_context(
            open_jobs(
                database_url,
                clock=Fast(),
                home=place.environment["HAN_SOLO_HOME"],
                agent_spec=place.environment["HAN_SOLO_AGENT_SPEC"],
                letta_base_url=place.door.url,
                letta_password=place.environment["LETTA_SERVER_PASSWORD"],
                message_gap_s=0,
            )
        )
        spec = next(job for job in load_registry().jobs if job.name == "dream")
        module = __import__("sys").modules[spec.function.__module__]
        yield Night(place, services, spec, module, monkeypatch)


def write(label: str, text: str) -> dict[str, Any]:
    return {"call": "write_own_block", "args": {"label": label, "value": text}}


async def test_a_night_with_the_rehearsal_model_ends_with_a_brief_and_observations(
    night: Night,
) -> None:
    done = await night.finish()

    assert done.outcome == "succeeded", done.error
    assert done.evidence is not None
    assert done.evidence["blocks"].keys() == {
        "pending_thoughts", "scott_portrait_forming", "ren_portrait_forming"
    }  # fmt: skip
    assert (await night.block("pending_thoughts")).startswith(f"Brief of {night.today}")
    assert f"{night.today}: " in await night.block("scott_portrait_forming")
    assert (await night.run()).why == "done"
    assert await night.times_asked() == 1


@pytest.mark.deep
async def test_each_way_in_which_nothing_good_was_written_is_a_failure_with_its_cause(
    night: Night,
) -> None:
    old = night.brief()
    ways: dict[str, list[dict[str, Any]]] = {
        "The agent wrote no new pending_thoughts: it called no tool.": [{"say": "All is well."}],
        "The agent wrote no new pending_thoughts: the turn was silent (empty_output)": [
            {"empty": True}
        ],
        "The agent wrote project_state, which the dream may not": [
            write("pending_thoughts", old), write("project_state", "x" * 99), {"say": "Done."}
        ],
        "The brief does not bear the date": [
            write("pending_thoughts", night.brief(head="Brief of yesterday")), {"say": "Done."}
        ],
        "The brief has 5 characters": [write("pending_thoughts", "Fine."), {"say": "Done."}],
        "write_own_block failed": [write("pending_thoughts", "x" * 9000), {"say": "Done."}],
        "The brief has no part Next": [
            write("pending_thoughts", night.brief().replace("Next", "Now")), {"say": "Done."}
        ],
    }  # fmt: skip
    for number, (sentence, steps) in enumerate(ways.items()):
        night.answer(*steps)
        result = await run_job(night.services, night.spec, started_by="person")
        assert isinstance(result, Finished)
        assert result.run.outcome == "failed"
        assert sentence in (result.run.error or ""), (number, result.run.error)
        assert not result.run.may_run_again
    assert (await night.run()).why == "needs_a_person"


@pytest.mark.deep
async def test_a_copy_of_yesterdays_brief_is_no_brief(night: Night) -> None:
    night.answer(write("pending_thoughts", night.brief(head="Brief of 2026-01-01")), {"say": "."})
    await run_job(night.services, night.spec, started_by="person")
    night.answer(write("pending_thoughts", night.brief()), {"say": "Done."})

    result = await run_job(night.services, night.spec, started_by="person")

    assert "The brief is a copy of the one before it" in (result.run.error or "")  # type: ignore[union-attr]


@pytest.mark.deep
async def test_a_turn_that_outlives_its_deadline_is_found_and_not_sent_again(night: Night) -> None:
    night.patch.setattr(night.module, "TURN_S", 0.5)
    night.answer({"sleep_s": 3, **write("pending_thoughts", night.brief())}, {"say": "Done."})

    done = await night.finish()

    assert done.outcome == "succeeded", done.error
    assert await night.times_asked() == 1


async def test_a_killed_dream_is_taken_up_by_the_next_run_and_the_agent_is_asked_once(
    night: Night,
) -> None:
    night.answer({"sleep_s": 2, **write("pending_thoughts", night.brief())}, {"say": "Done."})
    first = asyncio.create_task(night.run())
    await night.place.wait(night.times_begun)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)

    done = await night.finish()

    assert done.outcome == "succeeded", done.error
    assert done.attempt == 2
    assert await night.times_asked() == 1


async def test_a_cold_letta_is_waited_for_and_one_that_never_wakes_is_tried_later(
    night: Night,
) -> None:
    night.patch.setattr(night.module, "WARM_S", 1.0)
    night.place.door.is_shut = True
    never = await night.finish()
    assert never.outcome == "failed"
    assert "Letta did not answer for" in (never.error or "")
    assert never.may_run_again
    assert (await night.run()).why == "waiting"

    night.patch.setattr(night.module, "WARM_S", 60.0)
    waking = asyncio.create_task(run_job(night.services, night.spec, started_by="person"))
    await asyncio.sleep(1)
    night.place.door.is_shut = False
    result = await waking
    assert isinstance(result, Finished)
    assert result.run.outcome == "succeeded", result.run.error


async def test_a_bridge_that_is_down_pauses_nothing_and_the_failure_says_what_failed(
    night: Night,
) -> None:
    await night.place.stop_bridge()

    done = await night.finish()

    assert done.outcome == "failed"
    assert "The agent wrote no new pending_thoughts" in (done.error or "")
    assert "write_own_block" in (done.error or "")
    assert (await night.run()).why == "needs_a_person"
