"""Who leads: one process, until it ends, and each election ends what came before."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from han_solo.daemon.leadership import Leadership
from tests.integration.runner_fixtures import AGENT, NAME, Desk, found, open_desk


@pytest.fixture
async def desk(database_url: str) -> AsyncIterator[Desk]:
    async with open_desk(database_url) as opened:
        yield opened


async def test_one_leads_and_the_other_is_told_who(desk: Desk) -> None:
    first = Leadership(desk.db, NAME, holder="the first")
    second = Leadership(desk.db, NAME, holder="the second")
    assert await first.load_leader() is None
    async with first.try_lead() as epoch:
        assert epoch == 1
        async with second.try_lead() as other:
            assert other is None
        leader = await second.load_leader()
        assert leader is not None
        assert (leader.epoch, leader.holder) == (1, "the first")
    async with second.try_lead() as epoch:
        assert epoch == 2


async def test_agents_have_leaders_of_their_own(desk: Desk) -> None:
    async with (
        Leadership(desk.db, "ren").try_lead() as ren,
        Leadership(desk.db, "bob").try_lead() as bob,
    ):
        assert (ren, bob) == (1, 1)


async def test_who_leads_repairs_and_who_led_does_not(desk: Desk) -> None:
    desk.world["g"] = [found()]
    async with Leadership(desk.db, NAME).try_lead() as before:
        pass
    async with Leadership(desk.db, NAME).try_lead() as now:
        (late,) = await desk.run(desk.guard("g"), epoch=before)
        assert late.remedy is not None
        assert late.remedy.outcome == "refused"
        assert desk.repairs == []
        (report,) = await desk.run(desk.guard("g"), epoch=now)
    assert report.outcome == "repaired"
    assert [remedy.epoch for remedy in await desk.findings.list_remedies(AGENT)] == [now]
