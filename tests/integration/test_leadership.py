"""Who leads: one at a time, passed on when its session ends, and an epoch that only grows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from han_solo.daemon.leadership import Leadership
from han_solo.errors import LeadLost
from tests.integration.bridge_fixtures import Cable
from tests.integration.runner_fixtures import AGENT, NAME, Desk, found, open_desk
from tests.integration.store_fixtures import migrated, superuser


@pytest.fixture
async def desk(database_url: str) -> AsyncIterator[Desk]:
    async with open_desk(database_url) as opened:
        yield opened


async def test_one_leads_and_another_is_told_so(database_url):
    async with migrated(database_url) as db:
        async with Leadership(db, "ren").try_lead() as first:
            async with Leadership(db, "ren").try_lead() as second:
                assert second is None
            async with Leadership(db, "maya").try_lead() as other:
                assert other is not None, "each agent has a leader of its own"
        async with Leadership(db, "ren").try_lead() as third:
            assert third is not None
            assert first is not None
            assert third.epoch == first.epoch + 1


async def test_a_spare_takes_over_when_the_leaders_session_is_cut(database_url, postgres_server):
    stop = asyncio.Event()
    async with (
        migrated(database_url) as db,
        superuser(postgres_server, database_url) as root,
        Leadership(db, "ren").try_lead() as leader,
    ):
        assert leader is not None
        spare = Leadership(db, "ren", holder="spare")
        began = time.monotonic()
        waiting = asyncio.create_task(_lead_once(spare, stop))
        await asyncio.sleep(0)
        await root.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'han-solo leader' AND datname = current_database()"
        )
        epoch = await asyncio.wait_for(waiting, 10)
        await asyncio.wait_for(leader.lost.wait(), 10)
        assert epoch == leader.epoch + 1
        assert time.monotonic() - began < 10


async def test_a_leader_that_says_nothing_loses_the_lead(database_url):
    """As one that is frozen or cut off: the server ends its silent session."""
    async with migrated(database_url) as db:
        mute = Leadership(db, "ren", idle_s=0.5, beat_s=60)
        async with mute.try_lead() as leader:
            assert leader is not None
            epoch = await asyncio.wait_for(
                _lead_once(Leadership(db, "ren", holder="spare"), asyncio.Event()), 10
            )
            assert epoch == leader.epoch + 1


async def test_a_leader_that_is_cut_off_gives_up_before_another_is_elected(database_url):
    async with (
        migrated(database_url) as db,
        Cable(database_url) as cable,
        migrated(cable.url) as far,
        Leadership(far, "ren", idle_s=2, beat_s=0.2).try_lead() as leader,
    ):
        assert leader is not None
        spare = Leadership(db, "ren", holder="spare")
        waiting = asyncio.create_task(_lead_once(spare, asyncio.Event()))
        cable.hold()
        await asyncio.wait_for(leader.lost.wait(), 10)
        assert not leader.is_held
        assert not waiting.done()
        assert await asyncio.wait_for(waiting, 10) == leader.epoch + 1
        cable.let_go()


async def test_a_new_leader_closes_the_remedy_that_another_was_cut_off_in(desk: Desk) -> None:
    desk.world["g"] = [found()]

    async def wake_too_late(_context: Any, _found: Any) -> str:
        raise LeadLost

    async with Leadership(desk.db, NAME).try_lead() as old:
        assert old is not None
        with pytest.raises(LeadLost):
            await desk.run(desk.guard("g", remedy=wake_too_late), epoch=old.epoch)
    (left,) = await desk.findings.list_remedies(AGENT)
    assert left.outcome is None
    async with Leadership(desk.db, NAME).try_lead() as new:
        assert new is not None
        await desk.findings.abandon_remedies(AGENT, epoch=new.epoch)
    (closed,) = await desk.findings.list_remedies(AGENT)
    assert closed.outcome == "abandoned"


async def test_waiting_ends_when_asked_to_stop(database_url):
    stop = asyncio.Event()
    async with migrated(database_url) as db, Leadership(db, "ren").try_lead():
        waiting = asyncio.create_task(_lead_once(Leadership(db, "ren"), stop))
        await asyncio.sleep(0)
        stop.set()
        assert await asyncio.wait_for(waiting, 10) is None


async def test_who_leads_repairs_and_who_led_does_not(desk: Desk) -> None:
    desk.world["g"] = [found()]
    async with Leadership(desk.db, NAME).try_lead() as old:
        assert old is not None
    async with Leadership(desk.db, NAME).try_lead() as new:
        assert new is not None
        (late,) = await desk.run(desk.guard("g"), epoch=old.epoch)
        assert late.remedy is not None
        assert late.remedy.outcome == "refused"
        assert desk.repairs == []
        (report,) = await desk.run(desk.guard("g"), epoch=new.epoch)
    assert report.outcome == "repaired"
    assert [remedy.epoch for remedy in await desk.findings.list_remedies(AGENT)] == [new.epoch]


async def _lead_once(leadership: Leadership, stop: asyncio.Event) -> int | None:
    async with leadership.wait_to_lead(stop) as lead:
        return lead.epoch if lead else None
