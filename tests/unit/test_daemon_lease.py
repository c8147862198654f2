"""The lead ends with its lease, and what would be written after it is never sent."""

from __future__ import annotations

import datetime as dt

import pytest
from structlog.testing import capture_logs

from han_solo.daemon import lease
from han_solo.daemon.lease import Lead
from han_solo.daemon.outage import Outage
from han_solo.errors import LeadLost
from han_solo.letta.fence import writes_only_while
from tests.unit.letta_wire import BLOCK, Wire, reply


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [100.0]
    monkeypatch.setattr(lease, "elapsed_s", lambda: moment[0])
    return moment


def test_the_lead_ends_with_its_lease_unless_a_beat_renews_it(now: list[float]) -> None:
    lead = Lead(1, lease_s=6, asked_s=100)
    now[0] = 105
    assert lead.is_held
    lead.renew(asked_s=104)
    now[0] = 109.9
    assert lead.is_held
    now[0] = 110
    assert not lead.is_held
    assert lead.left_s == 0


def test_a_lead_that_was_taken_away_is_not_held(now: list[float]) -> None:
    lead = Lead(1, lease_s=6, asked_s=now[0])
    lead.lost.set()
    with pytest.raises(LeadLost):
        lead.require()


async def test_a_process_that_was_frozen_sends_no_write_when_it_wakes(now: list[float]) -> None:
    lead = Lead(1, lease_s=6, asked_s=now[0])
    wire = Wire([reply(BLOCK)])
    gateway = wire.gateway()
    with writes_only_while(lead.require):
        await gateway.write_block("block-1", "v")
        now[0] += 3600
        with pytest.raises(LeadLost):
            await gateway.write_block("block-1", "v")
        assert len(wire.requests) == 1
        await gateway.fetch_block("block-1")
    assert len(wire.requests) == 2, "to look needs no lead"
    await gateway.write_block("block-1", "v")
    assert len(wire.requests) == 3, "the fence ends with its body"


def test_an_outage_is_told_once_and_its_end_with_since_when() -> None:
    since = dt.datetime(2030, 1, 2, tzinfo=dt.UTC)
    outage = Outage("database")
    with capture_logs() as said:
        outage.ended()
        outage.began(since, "It is away.")
        outage.began(since + dt.timedelta(hours=1), "It is away.")
        outage.ended()
        outage.ended()
    assert [line["event"] for line in said] == ["daemon.database_away", "daemon.database_back"]
    assert said[1]["away_since"] == since.isoformat()
