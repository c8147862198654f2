"""Findings in the real Postgres: opened once, seen again, resolved, told once, kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from han_solo.findings.model import FIRST_PAUSE, LONGEST_PAUSE, FindingRow
from tests.integration.runner_fixtures import AGENT, NAME, START, Desk, found, open_desk


@pytest.fixture
async def desk(database_url: str) -> AsyncIterator[Desk]:
    async with open_desk(database_url) as opened:
        yield opened


async def record(desk: Desk, *keys: str, **more: Any) -> Any:
    return await desk.findings.record("g", AGENT, [found(key, **more) for key in keys])


async def open_rows(desk: Desk) -> dict[str, FindingRow]:
    return {row.key: row for row in await desk.findings.list_open(AGENT)}


async def test_what_is_seen_again_is_one_row_with_the_figures_of_the_last_look(desk: Desk) -> None:
    first = await record(desk, "a", detail={"size": 1})
    desk.wait(minutes=5)
    second = await record(desk, "a", summary="a is worse.", detail={"size": 2})

    (row,) = (await open_rows(desk)).values()
    assert first.opened_ids == first.open_ids == second.open_ids == (row.id,)
    assert second.opened_ids == ()
    assert (row.summary, row.detail, row.times_seen) == ("a is worse.", {"size": 2}, 2)
    assert (row.opened_at, row.last_seen_at) == (START, START + timedelta(minutes=5))


async def test_of_two_findings_the_one_that_is_gone_is_resolved(desk: Desk) -> None:
    await record(desk, "a", "b")
    desk.wait(minutes=1)
    changed = await record(desk, "b")

    assert list(changed.resolved.values()) == ["a"]
    assert set(await open_rows(desk)) == {"b"}
    resolved = next(row for row in await desk.findings.history(AGENT) if row.key == "a")
    assert resolved.resolved_at == START + timedelta(minutes=1)


async def test_what_comes_back_is_a_new_row(desk: Desk) -> None:
    first = await record(desk, "a")
    await record(desk)
    again = await record(desk, "a")

    assert again.opened_ids == again.open_ids
    assert again.open_ids != first.open_ids
    assert [row.is_open for row in await desk.findings.history(AGENT)] == [True, False]


async def test_guards_and_agents_do_not_resolve_each_others(desk: Desk) -> None:
    await record(desk, "a")
    await desk.findings.record("other", AGENT, [])
    await desk.findings.record("g", "agent-2", [])
    assert set(await open_rows(desk)) == {"a"}


async def test_a_guard_that_could_not_look_resolves_nothing(desk: Desk) -> None:
    await record(desk, "a")
    desk.wait(minutes=1)
    await desk.findings.record_failure("g", AGENT, "It was dark.")

    assert set(await open_rows(desk)) == {"a"}
    (run,) = await desk.findings.list_runs(AGENT)
    assert (run.error, run.looked_at, run.finished_at) == (
        "It was dark.",
        START,
        START + timedelta(minutes=1),
    )


async def test_a_look_during_which_another_was_recorded_is_not_recorded(desk: Desk) -> None:
    before = await desk.findings.count_runs("g", AGENT)
    await record(desk)  # another process looked, and recorded what it repaired
    late = await desk.findings.record("g", AGENT, [found("a")], runs=before)

    assert late.is_stale
    assert await open_rows(desk) == {}
    now = await desk.findings.count_runs("g", AGENT)
    assert not (await desk.findings.record("g", AGENT, [found("a")], runs=now)).is_stale


async def test_many_that_record_at_once_open_one_row(desk: Desk) -> None:
    await asyncio.gather(*(record(desk, "a", "b") for _ in range(8)))
    history = await desk.findings.history(AGENT)
    assert sorted(row.key for row in history) == ["a", "b"]
    assert all(row.times_seen == 8 for row in history)


async def test_findings_of_guards_that_no_longer_run_are_closed(desk: Desk) -> None:
    await record(desk, "a")
    await desk.findings.record("gone", AGENT, [found("b")])
    assert await desk.findings.resolve_unwatched(AGENT, ["g", "another"]) == (("gone", "b"),)
    assert set(await open_rows(desk)) == {"a"}


# Alerts


async def claim(desk: Desk) -> list[str]:
    return [alert.finding.key for alert in await desk.findings.claim_alerts(AGENT)]


async def tell(desk: Desk) -> list[str]:
    alerts = await desk.findings.claim_alerts(AGENT)
    await desk.findings.note_alerted(alerts)
    return [f"{alert.finding.key} {alert.finding.severity}" for alert in alerts]


async def test_an_opening_is_told_once_and_not_at_every_look(desk: Desk) -> None:
    told = []
    for _ in range(3):
        await record(desk, "a")
        told += await tell(desk)
        desk.wait(minutes=10)
    assert told == ["a warning"]
    (row,) = (await open_rows(desk)).values()
    assert row.alerted_at == START


async def test_what_came_back_is_told_again(desk: Desk) -> None:
    await record(desk, "a")
    first = await tell(desk)
    await record(desk)
    await record(desk, "a")
    assert first == await tell(desk) == ["a warning"]


async def test_what_becomes_critical_is_told_once_more_however_often_it_changes(desk: Desk) -> None:
    told = []
    for severity in ("warning", "critical", "warning", "critical"):
        await record(desk, "a", severity=severity)
        told += await tell(desk)
    assert told == ["a warning", "a critical"]


async def test_what_became_critical_while_it_was_told_is_due_again(desk: Desk) -> None:
    await record(desk, "a")
    alerts = await desk.findings.claim_alerts(AGENT)
    await record(desk, "a", severity="critical")
    await desk.findings.note_alerted(alerts)
    assert await tell(desk) == ["a critical"]


async def test_an_alert_that_did_not_go_out_is_due_later_each_time(desk: Desk) -> None:
    await record(desk, "a")
    tried_at = []
    for _ in range(60 * 5):
        if await claim(desk):
            tried_at.append(round((desk.clock.now() - START) / timedelta(minutes=1)))
        desk.wait(minutes=1)
    assert tried_at == [0, 1, 2, 4, 8, 16, 32, 64, 124, 184, 244]


async def test_two_processes_do_not_tell_the_same(desk: Desk) -> None:
    await record(desk, "a", "b", "c")
    claimed = await asyncio.gather(*(claim(desk) for _ in range(6)))
    assert sorted(key for keys in claimed for key in keys) == ["a", "b", "c"]


async def test_what_was_repaired_long_ago_is_no_longer_told(desk: Desk) -> None:
    await record(desk, "a", "b")
    await record(desk, "b")
    desk.wait(days=2)
    assert await claim(desk) == ["b"]


# Remedies


async def start(desk: Desk, epoch: int, *ids: int) -> int | None:
    return await desk.findings.start_remedy(
        "g", AGENT, agent_name=NAME, finding_ids=ids, epoch=epoch
    )


async def test_a_remedy_of_an_epoch_that_is_not_the_leaders_is_refused(desk: Desk) -> None:
    (finding,) = (await record(desk, "a")).open_ids
    assert await start(desk, 1, finding) is None  # nobody leads
    await desk.lead(2)
    assert await start(desk, 1, finding) is None
    assert await start(desk, 3, finding) is None
    assert await start(desk, 2, finding) is not None


async def test_one_remedy_of_a_guard_runs_at_a_time(desk: Desk) -> None:
    await desk.lead(1)
    (finding,) = (await record(desk, "a")).open_ids
    started = await asyncio.gather(*(start(desk, 1, finding) for _ in range(5)))
    (remedy,) = [one for one in started if one is not None]
    assert await desk.findings.finish_remedy(remedy, "done", "It was mended.")
    assert await start(desk, 1, finding) is not None


async def test_what_an_earlier_leader_left_running_is_abandoned(desk: Desk) -> None:
    await desk.lead(1)
    (finding,) = (await record(desk, "a")).open_ids
    frozen = await start(desk, 1, finding)
    assert frozen
    await desk.lead(2)

    taken_over = await start(desk, 2, finding)

    assert taken_over
    assert not await desk.findings.finish_remedy(frozen, "done", "It woke.")
    newest, oldest = await desk.findings.list_remedies(AGENT)
    assert (newest.id, newest.outcome) == (taken_over, None)
    assert (oldest.id, oldest.outcome) == (frozen, "abandoned")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE han_solo.remedies SET what = 'nothing'",
        "DELETE FROM han_solo.remedies",
        "TRUNCATE han_solo.remedies",
    ],
)
async def test_a_remedy_that_is_finished_can_not_be_changed(desk: Desk, statement: str) -> None:
    await desk.lead(1)
    (finding,) = (await record(desk, "a")).open_ids
    remedy = await start(desk, 1, finding)
    assert remedy
    await desk.findings.finish_remedy(remedy, "failed", "No.")
    with pytest.raises(asyncpg.RestrictViolationError, match="is history"):
        async with desk.db.transaction() as connection:
            await connection.execute(statement)


async def test_the_pause_of_a_remedy_grows_with_its_failures_until_one_helped(desk: Desk) -> None:
    await desk.lead(1)
    (a,) = (await record(desk, "a")).open_ids
    pauses = []
    for outcome in ("failed", "no_effect", *["failed"] * 8):
        remedy = await start(desk, 1, a)
        assert remedy
        await desk.findings.finish_remedy(remedy, outcome, "")  # type: ignore[arg-type]
        next_at = (await desk.findings.load_tries("g", AGENT)).find_next([a])
        assert next_at
        pauses.append(next_at - desk.clock.now())
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    tries = await desk.findings.load_tries("g", AGENT)
    assert tries.find_next([a, a + 1]) is None  # it was not tried on that one yet
    remedy = await start(desk, 1, a)
    assert remedy
    await desk.findings.finish_remedy(remedy, "done", "")
    assert (await desk.findings.load_tries("g", AGENT)).find_next([a]) is None
