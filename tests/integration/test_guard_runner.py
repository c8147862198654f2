"""What the guard runner does with what guards find, in the real Postgres."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from han_solo.daemon import checking
from han_solo.declare import Finding
from han_solo.errors import AgentGone, HanSoloError, LettaUnavailable
from han_solo.findings.model import COULD_NOT_LOOK
from tests.integration.runner_fixtures import AGENT, Desk, found, open_desk


@pytest.fixture
async def desk(database_url: str) -> AsyncIterator[Desk]:
    async with open_desk(database_url) as opened:
        await opened.lead(1)
        yield opened


def failing(error: Exception) -> Any:
    async def check(_context: Any) -> tuple[Finding, ...]:
        raise error

    return check


async def test_nothing_found_is_clear_and_repairs_nothing(desk: Desk) -> None:
    (report,) = await desk.run(desk.guard("g"), epoch=1)
    assert (report.outcome, report.findings, report.remedy) == ("clear", (), None)
    assert desk.repairs == []


async def test_what_is_found_is_repaired_and_looked_at_again(desk: Desk) -> None:
    desk.world["g"] = [found("a"), found("b")]
    (report,) = await desk.run(desk.guard("g"), epoch=1)

    assert report.outcome == "repaired"
    assert report.opened == 2
    assert sorted(report.resolved) == ["a", "b"]
    assert await desk.findings.list_open(AGENT) == ()
    (remedy,) = await desk.findings.list_remedies(AGENT)
    assert (remedy.outcome, remedy.what, remedy.epoch) == ("done", "It was mended.", 1)
    assert set(remedy.finding_ids) == {row.id for row in await desk.findings.history(AGENT)}


@pytest.mark.parametrize(
    "options",
    [{"epoch": None}, {"epoch": 1, "modes": {"g": "observe"}}, {"epoch": 2}],
    ids=["who does not lead", "mode observe", "who led once"],
)
async def test_nothing_is_repaired_by(desk: Desk, options: dict[str, Any]) -> None:
    desk.world["g"] = [found()]
    (report,) = await desk.run(desk.guard("g"), **options)
    assert report.outcome == "found"
    assert desk.repairs == []


async def test_a_guard_that_is_off_does_not_run(desk: Desk) -> None:
    desk.world["g"] = [found()]
    assert await desk.run(desk.guard("g"), epoch=1, modes={"g": "off"}) == ()
    assert await desk.findings.list_runs(AGENT) == ()


async def test_while_the_agent_may_be_another_nothing_is_repaired(desk: Desk) -> None:
    desk.world["agent_identity"] = [found("id", severity="critical")]
    desk.world["a"] = [found()]
    identity = desk.guard("agent_identity", mode="observe")

    reports = await desk.run(desk.guard("a"), identity, epoch=1)

    assert [report.guard for report in reports] == ["agent_identity", "a"]
    assert reports[1].remedy is not None
    assert reports[1].remedy.outcome == "refused"
    assert "agent_identity" in reports[1].remedy.what
    await desk.run(desk.guard("a"), epoch=1)  # also when that guard is not due
    assert desk.repairs == []
    desk.world.pop("agent_identity")
    await desk.run(desk.guard("a"), identity, epoch=1)
    assert desk.repairs == ["a"]


async def test_what_another_guards_remedy_mended_is_looked_at_again_in_the_same_run(
    desk: Desk,
) -> None:
    async def mend_all(_context: Any, _found: Any) -> str:
        desk.world.clear()
        return "All was mended."

    desk.world["a"], desk.world["b"] = [found("x")], [found("y")]
    watcher = desk.guard("a", mode="observe")
    first, second = await desk.run(watcher, desk.guard("b", remedy=mend_all), epoch=1)
    assert (first.outcome, first.resolved, first.opened) == ("clear", ("x",), 1)
    assert second.outcome == "repaired"
    assert await desk.findings.list_open(AGENT) == ()


# A check that fails


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (failing(HanSoloError("The lamp is broken.")), "The lamp is broken."),
        (failing(KeyError("x")), "A fault in the guard itself: KeyError"),
        (failing(TimeoutError()), "A fault in the guard itself: TimeoutError"),
    ],
)
async def test_a_check_that_fails_is_told_and_closes_nothing(
    desk: Desk, check: Any, said: str
) -> None:
    desk.world["g"] = [found("a")]
    await desk.run(desk.guard("g"), modes={"g": "observe"})

    with capture_logs():
        broken, other = await desk.run(desk.guard("g", check), desk.guard("other"), epoch=1)

    assert broken.outcome == "blind"
    assert said in str(broken.error)
    assert {row.key for row in broken.findings} == {"a", COULD_NOT_LOOK}
    assert other.outcome == "clear"
    assert desk.repairs == []
    (seen,) = await desk.run(desk.guard("g"), modes={"g": "observe"})
    assert seen.resolved == (COULD_NOT_LOOK,)
    assert desk.pager.keys == [["a"], [COULD_NOT_LOOK]]


async def test_what_can_not_be_recorded_is_a_fault_of_its_guard_alone(desk: Desk) -> None:
    desk.world["double"] = [found("a"), found("a")]
    desk.world["empty"] = [found("a", summary="")]
    desk.world["odd"] = [found("a", detail={"it": object()})]
    desk.world["nul"] = [found("a", summary="a\0b")]
    with capture_logs():
        reports = await desk.run(*map(desk.guard, ("double", "empty", "odd", "nul", "well")))
    assert [report.outcome for report in reports] == [*["blind"] * 4, "clear"]


async def test_a_check_that_hangs_is_cut_and_the_others_go_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(_context: Any) -> tuple[Finding, ...]:
        await asyncio.Event().wait()
        return ()

    monkeypatch.setattr(checking, "CHECK_TIMEOUT_S", 0.01)
    hung, other = await desk.run(desk.guard("a", hang), desk.guard("b"))
    assert hung.error == "It did not end within 0.01 s."
    assert other.outcome == "clear"


@pytest.mark.parametrize("error", [LettaUnavailable("Letta is away."), AgentGone("It is gone.")])
async def test_what_makes_all_guards_blind_is_told_by_one(desk: Desk, error: Exception) -> None:
    checks = [desk.guard(name, failing(error)) for name in ("a", "agent_identity", "b")]
    reports = await desk.run(*checks)
    assert [report.outcome for report in reports] == ["blind"] * 3
    assert [row.guard for row in await desk.findings.list_open(AGENT)] == ["agent_identity"]
    await desk.run(checks[0], modes={"agent_identity": "off"})
    assert [row.guard for row in await desk.findings.list_open(AGENT)] == ["agent_identity", "a"]


async def test_a_look_that_another_process_overtook_is_taken_anew(desk: Desk) -> None:
    looks = 0

    async def look(_context: Any) -> tuple[Finding, ...]:
        nonlocal looks
        looks += 1
        if looks == 1:  # meanwhile somebody else repairs it, and records that
            await desk.findings.record("g", AGENT, [])
            return (found("a"),)
        return ()

    (report,) = await desk.run(desk.guard("g", look), epoch=1)
    assert report.outcome == "clear"
    assert looks == 2
    assert await desk.findings.history(AGENT) == ()


async def test_a_look_that_is_overtaken_again_and_again_repairs_nothing(desk: Desk) -> None:
    async def look(_context: Any) -> tuple[Finding, ...]:
        await desk.findings.record("g", AGENT, [found("a")])
        return (found("a"), found("b"))

    (report,) = await desk.run(desk.guard("g", look), epoch=1)
    assert report.outcome == "found"
    assert [row.key for row in report.findings] == ["a"]
    assert desk.repairs == []


# A remedy that fails


async def test_a_remedy_without_effect_is_said_and_tried_again_later(desk: Desk) -> None:
    async def pretend(_context: Any, _found: Any) -> str:
        desk.repairs.append("g")
        return "It was mended."

    desk.world["g"] = [found()]
    guard = desk.guard("g", remedy=pretend)

    outcomes = []
    for _ in range(8):
        (report,) = await desk.run(guard, epoch=1)
        assert report.outcome == "found"
        assert report.remedy is not None
        outcomes.append(report.remedy.outcome)
        desk.wait(seconds=30)

    assert outcomes == [
        "no_effect", "deferred", "no_effect", "deferred", "deferred", "deferred", "no_effect",
        "deferred",
    ]  # fmt: skip
    desk.world["g"].append(found("new"))
    (report,) = await desk.run(guard, epoch=1)
    assert report.remedy
    assert report.remedy.outcome == "no_effect"
    (report,) = await desk.run(guard, epoch=1, at_once=True)
    assert report.remedy
    assert report.remedy.outcome == "no_effect"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (HanSoloError("The spanner is lost."), "The spanner is lost."),
        (ZeroDivisionError("x"), "A fault in the remedy itself: ZeroDivisionError: x"),
    ],
)
async def test_a_remedy_that_fails_is_recorded_and_the_others_go_on(
    desk: Desk, error: Exception, said: str
) -> None:
    async def fail(_context: Any, _found: Any) -> str:
        raise error

    desk.world["a"], desk.world["b"] = [found()], [found()]
    with capture_logs():
        broken, other = await desk.run(desk.guard("a", remedy=fail), desk.guard("b"), epoch=1)
    assert broken.outcome == "found"
    assert broken.remedy is not None
    assert (broken.remedy.outcome, broken.remedy.what) == ("failed", said)
    assert other.outcome == "repaired"
    (told,) = desk.pager.sent
    assert [(alert.finding.guard, alert.remedy and alert.remedy.outcome) for alert in told] == [
        ("a", "failed"),
        ("b", "done"),
    ]


async def test_a_remedy_of_many_that_helped_with_some_is_without_effect_on_the_rest(
    desk: Desk,
) -> None:
    async def mend_one(_context: Any, _found: Any) -> str:
        desk.world["g"].pop(0)
        return "One was mended."

    desk.world["g"] = [found("a"), found("b")]
    (report,) = await desk.run(desk.guard("g", remedy=mend_one), epoch=1)
    assert report.outcome == "found"
    assert report.resolved == ("a",)
    assert [row.key for row in report.findings] == ["b"]
    assert report.remedy is not None
    assert report.remedy.outcome == "no_effect"


async def test_a_remedy_that_was_cancelled_does_not_keep_the_next_from_starting(
    desk: Desk,
) -> None:
    began = asyncio.Event()

    async def hang(_context: Any, _found: Any) -> str:
        began.set()
        await asyncio.Event().wait()
        return ""

    desk.world["g"] = [found()]
    task = asyncio.create_task(desk.run(desk.guard("g", remedy=hang), epoch=1))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    (report,) = await desk.run(desk.guard("g"), epoch=1)

    assert report.outcome == "repaired"
    outcomes = [remedy.outcome for remedy in await desk.findings.list_remedies(AGENT)]
    assert outcomes == ["done", "abandoned"]


async def test_a_remedy_sees_that_it_runs_under_the_leaders_epoch(desk: Desk) -> None:
    seen: list[int] = []

    async def mend(context: Any, _found: Any) -> str:
        seen.append(context.epoch)
        desk.world.clear()
        return "It was mended."

    desk.world["g"] = [found()]
    await desk.run(desk.guard("g", remedy=mend), epoch=1)
    assert seen == [1]


# Alerts


async def test_what_is_found_in_one_run_is_told_in_one_message(desk: Desk) -> None:
    desk.world["a"], desk.world["b"] = [found("x"), found("y")], [found("z")]
    for _ in range(3):
        await desk.run(desk.guard("a"), desk.guard("b"))
        desk.wait(minutes=5)
    assert desk.pager.keys == [["x", "y", "z"]]


async def test_an_alert_that_fails_stops_nothing_and_is_tried_again(desk: Desk) -> None:
    desk.world["g"] = [found()]
    desk.pager.is_broken = True
    with capture_logs() as logs:
        (report,) = await desk.run(desk.guard("g"))
    assert report.outcome == "found"
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == [
        "alert.send_failed"
    ]
    desk.pager.is_broken = False
    await desk.run(desk.guard("g"))
    assert desk.pager.keys == []  # a minute is waited
    desk.wait(minutes=1)
    await desk.run(desk.guard("g"))
    assert desk.pager.keys == [["it"]]


async def test_what_was_repaired_at_once_is_told_with_what_was_done(desk: Desk) -> None:
    desk.world["g"] = [found()]
    await desk.run(desk.guard("g"), epoch=1)
    ((alert,),) = desk.pager.sent
    assert not alert.finding.is_open
    assert alert.remedy is not None
    assert (alert.remedy.outcome, alert.remedy.what) == ("done", "It was mended.")


@pytest.mark.parametrize("part", ["check", "remedy"])
async def test_a_guard_that_calls_for_the_end_of_the_process_ends_nothing(
    desk: Desk, part: str
) -> None:
    async def leave(*_given: Any) -> Any:
        raise SystemExit(3)

    desk.world["bad"], desk.world["good"] = [found()], [found()]
    bad, good = await desk.run(desk.guard("bad", **{part: leave}), desk.guard("good"), epoch=1)

    assert good.outcome == "repaired"
    if part == "check":
        assert bad.outcome == "blind"
        assert "SystemExit" in (bad.error or "")
    else:
        assert bad.remedy is not None
        assert bad.remedy.outcome == "failed"
        assert "SystemExit" in bad.remedy.what


async def test_a_check_that_holds_up_the_loop_is_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "MOST_HELD_S", 0.2)

    async def block(_context: Any) -> tuple[Finding, ...]:
        time.sleep(0.6)
        return ()

    async def wait(_context: Any) -> tuple[Finding, ...]:
        await asyncio.sleep(0.6)
        return ()

    held, waited = await desk.run(desk.guard("held", block), desk.guard("waited", wait))

    assert held.outcome == "blind"
    assert "held up the whole process for 1 s" in (held.error or "")
    assert waited.outcome == "clear"
