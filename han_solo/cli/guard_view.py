"""Guards, findings and remedies as people read them. Pure: what is shown depends on what is given.

What guards found is partly what Letta holds, which an agent may have written: it is shown so that
no terminal obeys it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from rich.table import Table
from rich.text import Text

from ..daemon.choice import Choice
from ..daemon.report import GuardReport
from ..findings.model import FindingRow, RemedyRow
from .block_text import visible
from .block_view import tell_age
from .guard_session import Row

STYLE_OF_SEVERITY: Final = {"critical": "bold red", "warning": "yellow"}
_STYLE_OF_OUTCOME: Final = {
    "clear": "green",
    "found": "yellow",
    "repaired": "cyan",
    "blind": "magenta",
}
_WORDS_OF_REMEDY: Final = {
    "done": "repaired",
    "no_effect": "tried without effect",
    "failed": "the remedy failed",
    "abandoned": "a remedy was cut short",
    "refused": "not repaired",
    "deferred": "not repaired yet",
}
INDENT: Final = "    "
"""Before what belongs to the line above."""


def build_table(rows: Sequence[Row], now: datetime | None) -> Table:
    """Build the table of the guards.

    Args:
        rows: what is known of each.
        now: the time; None when nothing is known of their runs.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("guard", no_wrap=True)
    table.add_column("mode", no_wrap=True)
    table.add_column("every", justify="right", no_wrap=True)
    if now is not None:
        table.add_column("looked", justify="right", no_wrap=True)
        table.add_column("state", no_wrap=True)
    table.add_column("incident", style="dim", no_wrap=True, overflow="ellipsis")
    for row in rows:
        choice = row.choice
        cells = [
            Text(choice.name, "" if choice.runs else "dim"),
            build_mode(choice),
            Text(tell_interval(choice.every_s)),
        ]
        if now is not None:
            looked = row.run.looked_at if row.run else None
            cells += [Text(tell_age(looked, now) if looked else "never"), build_state(row, now)]
        table.add_row(*cells, choice.spec.incident)
    return table


def build_mode(choice: Choice) -> Text:
    """Say the mode, marked when the settings chose it."""
    style = {"repair": "cyan", "observe": "", "off": "dim"}[choice.mode]
    return Text(f"{choice.mode}{'*' if choice.is_set else ''}", style)


def build_state(row: Row, now: datetime) -> Text:
    """Say how a guard stands."""
    if not row.choice.runs:
        return Text("off", "dim")
    if row.run is None:
        return Text("never looked", "dim")
    worst = "critical" if any(f.severity == "critical" for f in row.open) else "warning"
    count = f"{len(row.open)} open"
    if row.run.error is not None:
        since = f" for {tell_age(row.run.looked_at, now)}" if row.run.looked_at else ""
        return Text(f"could not look{since}", "magenta")
    return Text(count, STYLE_OF_SEVERITY[worst]) if row.open else Text("clear", "green")


def build_finding(row: FindingRow, now: datetime) -> Iterator[Text]:
    """Yield the lines of one open finding."""
    yield Text.assemble(
        (row.severity, STYLE_OF_SEVERITY[row.severity]),
        "  ",
        (row.guard, "bold"),
        (f"  since {tell_age(row.opened_at, now)}", "dim"),
    )
    yield Text.assemble(INDENT, visible(row.summary))
    yield Text.assemble(INDENT, (visible(row.hint), "dim"))


def build_findings(rows: Iterable[Row], now: datetime) -> Iterator[Text]:
    """Yield the lines of all open findings, the worst first."""
    found = [finding for row in rows for finding in row.open]
    for finding in sorted(found, key=lambda f: (f.severity, f.opened_at, f.id)):
        yield from build_finding(finding, now)


def build_report(report: GuardReport, now: datetime) -> Iterator[Text]:
    """Yield the lines of one run of one guard."""
    style = _style(report)
    yield Text.assemble(
        (f"{_sign(report)} ", style), (report.guard, "bold"), (f"  {_tell_outcome(report)}", style)
    )
    if report.error:
        yield Text.assemble(INDENT, (visible(report.error), "magenta"))
    if report.remedy:
        yield Text.assemble(INDENT, _build_remedy(report.remedy.outcome, report.remedy.what))
    for row in report.findings:
        age = f" Open for {tell_age(row.opened_at, now)}." if row.times_seen > 1 else ""
        yield Text.assemble(
            INDENT,
            (f"{row.severity}: ", STYLE_OF_SEVERITY[row.severity]),
            visible(row.summary),
            (age, "dim"),
        )
        yield Text.assemble(INDENT, (visible(row.hint), "dim"))


def _build_remedy(outcome: str | None, what: str | None) -> Text:
    words = _WORDS_OF_REMEDY.get(outcome or "", "being repaired")
    told = Text(words, "cyan" if outcome == "done" else "yellow")
    return Text.assemble(told, f": {visible(what)}") if what else told


def _sign(report: GuardReport) -> str:
    return {"clear": "✔", "repaired": "✔", "found": "✘", "blind": "?"}[report.outcome]


def _style(report: GuardReport) -> str:
    if any(row.severity == "critical" for row in report.findings):
        return STYLE_OF_SEVERITY["critical"]
    return _STYLE_OF_OUTCOME[report.outcome]


def _tell_outcome(report: GuardReport) -> str:
    if report.outcome == "blind":
        return "could not look"
    if report.outcome == "repaired":
        return "repaired"
    if report.findings:
        return f"{len(report.findings)} open"
    return f"clear again: {', '.join(report.resolved)}" if report.resolved else "clear"


def build_history(
    rows: Sequence[FindingRow], remedies: Mapping[int, RemedyRow], now: datetime
) -> Iterator[Text]:
    """Yield the lines of what was found, newest first.

    Args:
        rows: the findings.
        remedies: the last remedy of each, by the finding's id.
        now: the time.
    """
    for row in rows:
        how_long = tell_age(row.opened_at, row.resolved_at or now)
        state = (f"open for {how_long}", "yellow") if row.is_open else (f"for {how_long}", "dim")
        yield Text.assemble(
            f"{row.opened_at.astimezone():%Y-%m-%d %H:%M:%S}  ",
            (row.severity, STYLE_OF_SEVERITY[row.severity]),
            "  ",
            (row.guard, "bold"),
            "  ",
            state,
        )
        yield Text.assemble(INDENT, visible(row.summary))
        remedy = remedies.get(row.id)
        if remedy is not None:
            yield Text.assemble(INDENT, _build_remedy(remedy.outcome, remedy.what))
        elif not row.is_open:
            yield Text.assemble(INDENT, ("it was gone at the next look", "dim"))


def tell_interval(seconds: float) -> str:
    """Return an interval in the largest unit that it is a whole number of."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
