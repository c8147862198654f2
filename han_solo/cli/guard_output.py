"""What the guard commands put on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.text import Text

from ..daemon.choice import Choice
from ..daemon.report import GuardReport
from . import guard_view, run
from .block_text import say
from .guard_session import Row


def show_rows(rows: Sequence[Row], *, is_known: bool) -> None:
    """Show the guards, and what is open below them."""
    console, now = run.out(), datetime.now(UTC)
    console.print(guard_view.build_table(rows, now if is_known else None))
    if any(row.choice.is_set for row in rows):
        say(console, "* set in HAN_SOLO_GUARD_MODES.", style="dim")
    if any(row.open for row in rows):
        console.print()
        show_lines(console, guard_view.build_findings(rows, now))
        say(
            console,
            "What happened before: han-solo guards explain NAME. "
            "Look again and repair: han-solo guards run --repair.",
            style="dim",
        )


def show_reports(
    reports: Sequence[GuardReport], choices: Sequence[Choice], *, repaired: bool
) -> None:
    """Show what came of a run."""
    console, now = run.out(), datetime.now(UTC)
    for report in reports:
        show_lines(console, guard_view.build_report(report, now))
    is_open = {report.guard for report in reports if report.findings}
    can = [choice.name for choice in choices if choice.name in is_open and choice.spec.remedy]
    if can and not repaired:
        say(console, f"Can be repaired: han-solo guards run --repair {' '.join(can)}", style="dim")
    count = len(reports)
    found = sum(len(report.findings) for report in reports)
    blind = sum(report.outcome == "blind" for report in reports)
    words = f"{count} guard{'' if count == 1 else 's'} looked; {found} open."
    if blind:
        words = f"{count} guards: {count - blind} looked, {blind} could not; {found} open."
    say(run.err(), words, style="dim")


def show_lines(console: Console, lines: Iterable[Text]) -> None:
    """Show lines: folded under their indent on a terminal, whole into a pipe."""
    for line in lines:
        if console.is_terminal and line.plain.startswith(guard_view.INDENT):
            width = len(guard_view.INDENT)
            console.print(Padding(line[width:], (0, 0, 0, width)))
        else:
            say(console, line)


def show_page(choice: Choice, text: str | None) -> None:
    """Show what a guard looks for, and the page of its incident."""
    console, spec = run.out(), choice.spec
    head = Text(spec.name, "bold").append(
        f"  {choice.mode}, every {guard_view.tell_interval(choice.every_s)}, "
        f"{'with a remedy' if spec.remedy else 'reports only'}",
        "not bold dim",
    )
    say(console, head)
    say(console, spec.description.replace("``", "`"))
    say(console, spec.source, style="dim")
    console.print()
    if text is None:
        say(
            console,
            f"There is no page docs/incidents/{spec.incident}.md beside it.",
            style="yellow",
        )
    elif console.is_terminal:
        console.print(Markdown(text))
    else:
        print(text, end="")


def print_json(body: object) -> None:
    print(json.dumps(body, indent=2, ensure_ascii=False), flush=True)
