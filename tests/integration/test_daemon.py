"""The daemon as a process: repairs within an interval, takes over, outlives what goes away."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.bridge_fixtures import Cable
from tests.integration.daemon_fixtures import Installation, open_installation


@pytest.fixture
async def place(
    tmp_path: Path, letta_server: Any, letta_actor: Mapping[str, str], database_url: str
) -> AsyncIterator[Installation]:
    async with open_installation(tmp_path, letta_server, letta_actor, database_url) as opened:
        yield opened


async def test_a_switch_behind_our_back_is_put_right_within_an_interval_and_letta_may_go(
    place: Installation,
) -> None:
    daemon = await place.start()
    await place.spoil()
    assert not await place.is_whole()

    await place.wait(place.is_whole)

    remedies = await place.wait(place.remedies)
    assert {row["outcome"] for row in remedies if row["finished_at"]} <= {"done"}
    place.door.is_shut = True
    await place.spoil()
    await place.wait(lambda: _is_blind(place))
    place.door.is_shut = False
    await place.wait(place.is_whole)

    daemon.send_signal(signal.SIGTERM)
    assert await daemon.wait() == 0
    assert await place.db.fetchval("SELECT state FROM han_solo.daemons") == "stopped"
    said = [json.loads(line) for line in place.log.read_text(encoding="utf-8").splitlines()]
    assert said[-1]["event"] == "daemon.stopped"


async def test_when_the_leader_is_killed_in_a_remedy_the_spare_takes_over_and_none_runs_twice(
    place: Installation,
) -> None:
    place.add_slow_guard()
    first = await place.start()
    await place.wait(lambda: place.note_of(first, "began"))
    second = await place.start()
    assert await place.state_of(second) == "spare"
    await place.spoil()

    first.kill()
    began = time.monotonic()
    await first.wait()
    await place.wait(lambda: place.leads(second))

    assert time.monotonic() - began < 10
    await place.wait(lambda: place.note_of(second, "began"))
    place.let_go(second)
    await place.wait(lambda: _slow_remedies(place, "done"))
    rows = [(row["epoch"], row["outcome"]) for row in await _slow_remedies(place)]
    assert rows == [(1, "abandoned"), (2, "done")]
    await place.wait(place.is_whole)
    done = [row for row in await place.remedies() if row["outcome"] == "done"]
    assert len({tuple(row["finding_ids"]) for row in done}) == len(done)


@pytest.mark.deep
async def test_a_frozen_leader_is_replaced_and_does_nothing_when_it_wakes(
    place: Installation,
) -> None:
    first, second = await place.start(), await place.start()
    await place.wait(lambda: place.leads(first))

    first.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    await place.wait(lambda: place.leads(second))
    assert time.monotonic() - began < 10
    await place.spoil()
    first.send_signal(signal.SIGCONT)
    await place.wait(place.is_whole)
    await place.wait(lambda: _is_spare(place, first))

    remedies = [row for row in await place.remedies() if row["guard"] == "context_window"]
    assert {row["epoch"] for row in remedies} == {2}


@pytest.mark.deep
async def test_postgres_may_go_away_and_come_back_under_a_daemon(
    tmp_path: Path, letta_server: Any, letta_actor: Mapping[str, str], database_url: str
) -> None:
    async with (
        Cable(database_url) as cable,
        open_installation(
            tmp_path, letta_server, letta_actor, database_url, daemon_database_url=cable.url
        ) as place,
    ):
        daemon = await place.start()
        cable.cut()
        await place.spoil()
        await place.wait(lambda: _said(place, "daemon.database_away"))
        assert not await place.is_whole()
        cable.mend()

        await place.wait(place.is_whole, timeout_s=90)

        assert daemon.returncode is None
        said = place.log.read_text(encoding="utf-8")
        assert said.count("daemon.database_away") == 1
        assert said.count("daemon.database_back") == 1


async def test_a_remedy_under_way_is_finished_when_the_daemon_is_stopped(
    place: Installation,
) -> None:
    place.add_slow_guard()
    daemon = await place.start()
    await place.wait(lambda: place.note_of(daemon, "began"))
    daemon.send_signal(signal.SIGTERM)
    place.let_go(daemon)

    assert await daemon.wait() == 0

    assert await place.note_of(daemon, "wrote")
    assert [row["outcome"] for row in await _slow_remedies(place)] == ["done"]


@pytest.mark.deep
async def test_a_leader_frozen_in_the_middle_of_a_remedy_writes_nothing_when_it_wakes(
    place: Installation,
) -> None:
    place.add_slow_guard()
    first = await place.start()
    await place.wait(lambda: place.note_of(first, "began"))
    second = await place.start()
    first.send_signal(signal.SIGSTOP)
    await place.wait(lambda: place.note_of(second, "began"))

    place.let_go(first)  # its next step is due in the very moment in which it wakes
    first.send_signal(signal.SIGCONT)
    await place.wait(lambda: _is_spare(place, first))
    place.let_go(second)
    await place.wait(lambda: place.note_of(second, "wrote"))

    assert not await place.note_of(first, "wrote")
    tags = (await place.gateway.fetch_agent(place.agent_id)).tags
    assert [tag for tag in tags if tag.startswith("mended-by-")] == [f"mended-by-{second.pid}"]
    await place.wait(lambda: _slow_remedies(place, "done"))
    rows = [(row["epoch"], row["outcome"]) for row in await _slow_remedies(place)]
    assert rows == [(1, "abandoned"), (2, "done")]


@pytest.mark.deep
@pytest.mark.parametrize("when", ["before it connects", "while it leads"])
async def test_a_daemon_ends_soon_although_postgres_hangs(
    tmp_path: Path,
    letta_server: Any,
    letta_actor: Mapping[str, str],
    database_url: str,
    when: str,
) -> None:
    async with (
        Cable(database_url) as cable,
        open_installation(
            tmp_path, letta_server, letta_actor, database_url, daemon_database_url=cable.url
        ) as place,
    ):
        if when == "before it connects":
            cable.hold()
            daemon = await place.start(is_waited_for=False)
            await place.wait(lambda: _has_opened(cable))
        else:
            daemon = await place.start()
            await place.wait(lambda: place.leads(daemon))
            cable.hold()
        daemon.send_signal(signal.SIGTERM)
        async with asyncio.timeout(25):
            assert await daemon.wait() == 0
        cable.let_go()


async def _is_blind(place: Installation) -> bool:
    """Say whether the daemon noticed that it can not look."""
    return bool(
        await place.db.fetchval("SELECT count(*) FROM han_solo.guard_runs WHERE error IS NOT NULL")
    )


async def _said(place: Installation, event: str) -> bool:
    return event in place.log.read_text(encoding="utf-8")


async def _is_spare(place: Installation, process: Any) -> bool:
    return await place.state_of(process) == "spare"


async def _has_opened(cable: Cable) -> bool:
    return cable.is_in_use


async def _slow_remedies(place: Installation, outcome: str | None = None) -> list[Any]:
    rows = await place.db.fetch("SELECT * FROM han_solo.remedies WHERE guard = 'slow' ORDER BY id")
    return [row for row in rows if outcome in {None, row["outcome"]}]


async def test_who_leads_repairs_what_a_person_asks_for_whatever_its_mode(
    place: Installation,
) -> None:
    await place.start(HAN_SOLO_GUARD_MODES="reasoner_off=observe,context_window=observe")
    await place.spoil()
    found = await place.type("guards", "run", "reasoner_off")
    assert found.returncode == 3

    asked = await place.type("guards", "run", "reasoner_off", "--repair")

    assert asked.returncode == 0, asked.said
    assert "leads, and was asked to repair" in asked.said
    assert await place.is_whole()
    (remedy,) = await place.remedies()
    assert (remedy["guard"], remedy["outcome"]) == ("reasoner_off", "done")
