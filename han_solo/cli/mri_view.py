"""The MRI of the memory at a terminal: its figures, two plots, and the spots to mend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from rich.bar import Bar
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..memory.mri import Day, Mri, TimesFound
from . import run
from .block_text import say, visible

BAR_CELLS: Final = 36
LEAST_BAR_CELLS: Final = 6
BESIDE_BAR_CELLS: Final = 24
"""What stands before and behind a bar; on a narrow terminal the bar is what gives way."""

MAX_DAY_BARS: Final = 16
"""More days are put together, so that the plot stays on one screen."""


def show_mri(found: Mri, zone: ZoneInfo) -> None:
    """Show what the searches of the last days tell of the memory."""
    console = run.out()
    for line in _figures(found, zone):
        say(console, line)
    if not found.passages:
        say(console, "Nothing is remembered yet: han-solo memory add, memory import, or adopt.")
        return
    console.print(_plot_times(found.times_found, found.passages, _bar_cells(console)))
    if not found.searches:
        say(console, "Nobody searched in that time, so what is found can not be told.")
        return
    console.print(_plot_days(found.days, _bar_cells(console)))
    _show_spots(console, found, zone)


def _figures(found: Mri, zone: ZoneInfo) -> list[Text]:
    since = found.since.astimezone(zone)
    lines = [
        Text(
            f"{_count(found.passages, 'passage')}: {found.foundational:,} foundational, "
            f"{found.new:,} new since {since:%Y-%m-%d}; {found.archived:,} archived beside them"
        ),
        Text(
            f"{_count(found.searches, 'search', 'searches')} since then: {found.empty:,} found "
            f"nothing, {found.by_words_alone:,} went by words alone"
        ),
    ]
    if found.judged:
        lines.append(Text(f"{found.of_use:,} of {found.judged:,} that were judged were of use"))
    elif found.searches:
        lines.append(
            Text("None was judged: log_memory_access says what a search was good for.", "dim")
        )
    return lines


def _plot_times(times: Sequence[TimesFound], passages: int, cells: int) -> Table:
    table = _plot("Passages by how often they were found")
    most = max(each.passages for each in times) or 1
    ends = [after.first_times - 1 for _, after in pairwise(times)]
    for each, last in zip(times, [*ends, None], strict=True):
        if last is None:
            name = f"{each.first_times}+"
        elif last <= each.first_times:
            name = "never" if not each.first_times else str(each.first_times)
        else:
            name = f"{each.first_times}-{last}"
        color = "red" if not each.first_times else "cyan"
        share = f"{each.passages:,}  {each.passages / passages:.0%}"
        table.add_row(name, _bar(each.passages, most, color, cells), share)
    return table


def _plot_days(days: Sequence[Day], cells: int) -> Table:
    table = _plot("Searches")
    each = -(-len(days) // MAX_DAY_BARS)
    # From the last day backwards, so that only the oldest bar may be of fewer days.
    spans = [days[max(end - each, 0) : end] for end in range(len(days), 0, -each)][::-1]
    most = max(sum(day.searches for day in span) for span in spans) or 1
    for span in spans:
        searches, empty = sum(day.searches for day in span), sum(day.empty for day in span)
        note = f"{searches:,}" + (f", {empty:,} empty" if empty else "") if searches else ""
        table.add_row(f"{span[0].day:%b %d}", _bar(searches, most, "cyan", cells), note)
    return table


def _show_spots(console: Console, found: Mri, zone: ZoneInfo) -> None:
    _show_list(
        console,
        f"Blind: {_count(found.blind, 'question')} that found nothing, or nothing of use",
        (
            (
                f"{each.times} times" if each.times > 1 else "once",
                each.question + (f" [{where}]" if (where := each.where()) else ""),
                ("nothing" if each.found_nothing else "nothing of use")
                + f", last {_day(each.last_at, zone)}",
            )
            for each in found.blind_spots
        ),
        found.blind,
    )
    _show_list(
        console,
        f"Dead: {_count(found.dead, 'passage')} that no search showed and nobody read",
        (
            (str(each.id), each.beginning, f"{each.scope}, of {_day(each.created_at, zone)}")
            for each in found.dead_passages
        ),
        found.dead,
    )
    _show_list(
        console,
        f"In the way: {_count(found.unhelpful, 'passage')} found again and again, never of use",
        (
            (str(each.id), each.beginning, f"found {each.times} times, {each.not_used} in vain")
            for each in found.unhelpful_passages
        ),
        found.unhelpful,
    )
    _show_list(
        console,
        "Hot: what is found the most",
        (
            (
                str(each.id),
                each.beginning,
                f"{each.times} times, used {each.used}, last {_day(each.last_at, zone)}",
            )
            for each in found.hot_passages
        ),
        len(found.hot_passages),
    )
    _show_list(
        console,
        "Scopes",
        (
            (each.scope, f"{_count(each.passages, 'passage')}, {each.dead:,} dead",
             f"found {each.times:,} times")
            for each in found.scopes
        ),
        len(found.scopes),
    )  # fmt: skip


def _show_list(
    console: Console, title: str, rows: Iterable[tuple[str, str, str]], count: int
) -> None:
    listed = list(rows)
    if not listed:
        return
    console.print()
    say(console, title, style="bold")
    if console.is_terminal:
        console.print(_fold(listed))
    else:  # whole lines for whoever reads a pipe
        for first, text, note in listed:
            say(console, f"{visible(first)}  {_in_one_line(text)}  ({note})")
    if count > len(listed):
        say(console, f"and {count - len(listed):,} more", style="dim")


def _fold(rows: Sequence[tuple[str, str, str]]) -> Table:
    """Build a table of which only the text is cut where the terminal is narrow."""
    table = Table(box=None, pad_edge=False, show_header=False, expand=True)
    table.add_column(style="cyan", no_wrap=True, width=max(len(row[0]) for row in rows))
    table.add_column(overflow="ellipsis", no_wrap=True, ratio=1)
    table.add_column(style="dim", no_wrap=True, width=max(len(row[2]) for row in rows))
    for first, text, note in rows:
        table.add_row(Text(visible(first)), Text(_in_one_line(text)), Text(note))
    return table


def _in_one_line(text: str) -> str:
    return " ".join(visible(text).split())


def _plot(title: str) -> Table:
    table = Table(
        box=None, pad_edge=False, show_header=False, title=f"\n{title}", title_justify="left",
        title_style="bold not italic",
    )  # fmt: skip
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    return table


def _bar(value: int, most: int, color: str, cells: int) -> Bar:
    return Bar(most, 0, value, width=cells, color=color)


def _bar_cells(console: Console) -> int:
    return max(LEAST_BAR_CELLS, min(BAR_CELLS, console.width - BESIDE_BAR_CELLS))


def _count(number: int, word: str, words: str | None = None) -> str:
    return f"{number:,} {word if number == 1 else words or word + 's'}"


def _day(moment: datetime, zone: ZoneInfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d}"
