"""How guards and findings are shown at a terminal, and what a watch tells."""

from __future__ import annotations

import asyncio
import io
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from han_solo.cli import guard_output, guard_view, run
from han_solo.cli.guard_session import Row, _run_while_leading, pick
from han_solo.cli.guard_watch import Watch
from han_solo.daemon.choice import Choice
from han_solo.daemon.lease import Lead, elapsed_s
from han_solo.daemon.report import GuardReport, RemedyReport
from han_solo.declare import GuardSpec
from han_solo.errors import DatabaseRefused, DatabaseUnavailable, UsageError
from han_solo.findings.model import FindingRow, GuardRun, RemedyRow

NOW = datetime(2030, 1, 2, 12, tzinfo=UTC)


async def nothing(_context: Any, _found: Any = None) -> Any:
    return ()


def choice(name: str = "g", *, mode: Any = "observe", is_set: bool = False) -> Choice:
    spec = GuardSpec(name, nothing, None, 60, "it-happened", "observe", "Finds it.", "g.py:1")
    return Choice(spec, mode, 90.0, is_set)


def finding(number: int = 1, **more: Any) -> FindingRow:
    fields: dict[str, Any] = {
        "id": number,
        "guard": "g",
        "agent_id": "agent-1",
        "key": f"key-{number}",
        "severity": "warning",
        "summary": f"Number {number} is wrong.",
        "hint": "Mend it.",
        "detail": {},
        "opened_at": NOW - timedelta(minutes=5),
        "last_seen_at": NOW,
        "times_seen": 2,
        "alerted_at": None,
        "resolved_at": None,
    }
    return FindingRow(**(fields | more))


def guard_run(**more: Any) -> GuardRun:
    fields: dict[str, Any] = {
        "guard": "g",
        "agent_id": "agent-1",
        "finished_at": NOW,
        "looked_at": NOW - timedelta(seconds=7),
        "duration_ms": 3,
        "findings": 0,
        "error": None,
    }
    return GuardRun(**(fields | more))


def report(**more: Any) -> GuardReport:
    fields: dict[str, Any] = {
        "guard": "g",
        "outcome": "clear",
        "findings": (),
        "opened": 0,
        "resolved": (),
    }
    return GuardReport(**(fields | more))


def show(*what: Any, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    for part in what:
        console.print(part)
    return cast("str", console.file.getvalue())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (Row(choice()), "never looked"),
        (Row(choice(mode="off"), guard_run()), "off"),
        (Row(choice(), guard_run()), "clear"),
        (Row(choice(), guard_run(), (finding(), finding(2))), "2 open"),
        (Row(choice(), guard_run(error="It is dark."), (finding(),)), "could not look for 7 s"),
        (Row(choice(), guard_run(error="It is dark.", looked_at=None)), "could not look"),
    ],
)
def test_the_state_of_a_guard_is_said(row: Row, said: str) -> None:
    assert guard_view.build_state(row, NOW).plain == said


def test_the_table_fits_a_terminal_and_marks_what_the_settings_chose() -> None:
    rows = [
        Row(choice("a_guard_of_a_long_name", is_set=True), guard_run(), (finding(),)),
        Row(choice(mode="off")),
    ]
    shown = show(guard_view.build_table(rows, NOW))
    assert max(map(len, shown.splitlines())) <= 80
    assert "observe*" in shown
    assert "90 s" in shown
    assert "looked" not in show(guard_view.build_table(rows, None))


def test_the_worst_finding_comes_first_with_what_to_do() -> None:
    rows = [Row(choice(), guard_run(), (finding(), finding(2, severity="critical")))]
    lines = [line.plain for line in guard_view.build_findings(rows, NOW)]
    assert lines == [
        "critical  g  since 5 min",
        "    Number 2 is wrong.",
        "    Mend it.",
        "warning  g  since 5 min",
        "    Number 1 is wrong.",
        "    Mend it.",
    ]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (report(), ["✔ g  clear"]),
        (report(resolved=("a", "b")), ["✔ g  clear again: a, b"]),
        (report(outcome="blind", error="It is dark."), ["? g  could not look", "    It is dark."]),
        (report(outcome="repaired", remedy=RemedyReport("done", "It was mended.")),
         ["✔ g  repaired", "    repaired: It was mended."]),
        (report(outcome="found", findings=(finding(),)),
         ["✘ g  1 open", "    warning: Number 1 is wrong. Open for 5 min.", "    Mend it."]),
        (report(outcome="found", findings=(finding(times_seen=1),),
                remedy=RemedyReport("deferred", "Later.")),
         ["✘ g  1 open", "    not repaired yet: Later.", "    warning: Number 1 is wrong.",
          "    Mend it."]),
    ],
)  # fmt: skip
def test_a_run_is_said_with_what_was_done(one: GuardReport, said: list[str]) -> None:
    assert [line.plain for line in guard_view.build_report(one, NOW)] == said


def test_history_says_how_long_and_what_was_done() -> None:
    gone = finding(2, resolved_at=NOW - timedelta(minutes=4))
    remedy = RemedyRow(1, "g", "agent-1", (2,), 1, NOW, NOW, "done", "It was mended.")
    lines = [
        line.plain.strip()
        for line in guard_view.build_history([finding(), gone, finding(3)], {2: remedy}, NOW)
    ]
    assert lines[0].endswith("warning  g  open for 5 min")
    assert lines[2].endswith("warning  g  for 1 min")
    assert lines[4] == "repaired: It was mended."


def test_what_a_model_wrote_moves_no_terminal() -> None:
    row = finding(summary="\x1b[2J[red]gone", hint="\x07")
    rows = [Row(choice(), guard_run(), (row,))]
    shown = show(*guard_view.build_findings(rows, NOW))
    assert "\x1b" not in shown
    assert "[red]gone" in shown
    assert "\x1b" not in show(*guard_view.build_report(report(findings=(row,)), NOW))


def test_lines_are_whole_in_a_pipe_and_folded_under_their_indent_on_a_terminal() -> None:
    rows = [Row(choice(), guard_run(), (finding(summary="word " * 30),))]
    pipe = Console(file=io.StringIO(), width=60)
    guard_output.show_lines(pipe, guard_view.build_findings(rows, NOW))
    assert len(pipe.file.getvalue().splitlines()) == 3  # type: ignore[attr-defined]
    terminal = Console(file=io.StringIO(), width=60, force_terminal=True, color_system=None)
    guard_output.show_lines(terminal, guard_view.build_findings(rows, NOW))
    folded = terminal.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(folded) > 3
    assert all(line.startswith("    ") for line in folded[1:])


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(30, "30 s"), (90, "90 s"), (300, "5 min"), (3600, "1 h"), (86_400, "1 d"), (0.5, "0.5 s")],
)
def test_an_interval_is_said_in_whole_units(seconds: float, said: str) -> None:
    assert guard_view.tell_interval(seconds) == said


def test_without_names_those_that_are_off_are_left_out_and_by_name_they_are_not() -> None:
    choices = [choice("a"), choice("b", mode="off")]
    assert [one.name for one in pick(choices, [])] == ["a"]
    assert [one.name for one in pick(choices, ["b", "a", "b"])] == ["a", "b"]
    with pytest.raises(UsageError, match="no guard 'c'"):
        pick(choices, ["c"])


# Watching


class Session:
    """Runs guards as it is told to."""

    def __init__(self, *results: Any) -> None:
        self.results = list(results)
        self.asked: list[list[str]] = []

    async def run(self, due: Any) -> Any:
        self.asked.append([one.name for one in due])
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    @property
    def records(self) -> Any:
        async def load_rows(choices: Any) -> Any:
            return tuple(Row(one, guard_run()) for one in choices)

        return SimpleNamespace(load_rows=load_rows)


def watch(session: Session, *, as_json: bool = False, interval_s: float | None = 0.0) -> Watch:
    return Watch(cast("Any", session), [choice()], interval_s, as_json)


async def test_a_watch_tells_changes_and_not_every_look(capsys: pytest.CaptureFixture[str]) -> None:
    open_ = report(outcome="found", findings=(finding(),))
    session = Session([report()], [report()], [open_], [open_], [report(resolved=("key-1",))])
    watching = watch(session, as_json=True)
    watching.interval_s = 1e-9
    for _ in range(5):
        await watching.look()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["outcome"] for line in lines] == ["clear", "found", "clear"]
    assert lines[1]["findings"][0]["key"] == "key-1"


async def test_a_guard_is_looked_at_when_it_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr("han_solo.cli.guard_watch.time.monotonic", lambda: now)
    session = Session([report()], [report()])
    watching = watch(session, as_json=True, interval_s=None)
    await watching.look()
    now += 89
    await watching.look()
    assert len(session.asked) == 1
    now += 1
    await watching.look()
    assert len(session.asked) == 2


async def test_a_part_that_is_away_is_told_once_and_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    away = DatabaseUnavailable("Postgres is away.")
    watching = watch(Session(away, away, [report()]))
    for _ in range(3):
        await watching.look()
    caught = capsys.readouterr()
    assert caught.err.splitlines() == ["Postgres is away.", "It is back."]
    assert caught.out.splitlines() == ["✔ g  clear"]


async def test_what_will_not_come_back_ends_the_watch() -> None:
    with pytest.raises(DatabaseRefused):
        await watch(Session(DatabaseRefused("Wrong password."))).look()


async def test_the_table_of_a_watch_has_the_guards_their_findings_and_what_is_away() -> None:
    watching = watch(Session([report()], DatabaseUnavailable("Postgres is away.")))
    watching.interval_s = 1e-9
    await watching.look()
    await watching.look()
    shown = show(watching.build(NOW))
    assert "clear" in shown
    assert "Postgres is away." in shown
    assert run.out().is_terminal is False


# Leading from a terminal


def lead_now() -> Lead:
    return Lead(1, lease_s=60, asked_s=elapsed_s())


async def test_what_is_under_way_is_cut_off_when_the_lead_is_lost() -> None:
    lead, cut = lead_now(), asyncio.Event()

    async def work() -> None:
        lead.lost.set()
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()

    with pytest.raises(DatabaseUnavailable, match="The lead was lost"):
        await _run_while_leading(lead, work())
    assert cut.is_set()


async def test_what_is_done_while_leading_is_returned_and_what_failed_raises() -> None:
    async def fail() -> None:
        raise UsageError("No.")

    async def work() -> int:
        return 5

    assert await _run_while_leading(lead_now(), work()) == 5
    with pytest.raises(UsageError, match="No"):
        await _run_while_leading(lead_now(), fail())
