"""Blocks, versions and events as people read them. Pure: what is shown depends on what is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.table import Table
from rich.text import Text

from ..blocks.model import BlockState, Event, VersionEntry
from .block_text import visible

NEARLY_FULL: Final = 0.8
TOO_FULL: Final = 0.95
"""From these on a bar is yellow and red: an agent that appends a line a day has days left."""

MIN_BAR: Final = 6
MAX_BAR: Final = 24
MIN_LABEL: Final = 10
MAX_AUTHOR: Final = 12
BESIDE: Final = 35
"""Cells of version, author, age and the gaps between all columns."""

_PARTS: Final = " ▏▎▍▌▋▊▉"
"""A cell from empty to seven eighths full."""

FIRST_SEEN: Final = "first_seen"
"""An event that is no finding: a block's text became its first version."""

ORIGINS: Final = {
    "seed": "made",
    "write": "written",
    "restored": "restored",
    "adopted_outside": "outside",
    "revert_repaired": "put back",
    "merged": "merged",
}
_STYLE_OF_ORIGIN: Final = {
    "adopted_outside": "yellow",
    "revert_repaired": "magenta",
    "merged": "yellow",
    "restored": "cyan",
}
_STYLE_OF_EVENT: Final = {
    "first_seen": "dim",
    "settled": "cyan",
    "dropped": "yellow",
    "adopted": "yellow",
    "repaired": "magenta",
    "merged": "yellow",
    "overwritten": "bold red",
}
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def build_list(
    states: Sequence[BlockState], last: Mapping[str, VersionEntry], now: datetime, width: int
) -> Table:
    """Build the table of all blocks."""
    sizes = {state.label: f"{state.length:,} of {state.limit:,}" for state in states}
    free = width - BESIDE - max(map(len, [*sizes.values(), "characters"]))
    longest = max(len(visible(state.label)) for state in states)
    label = max(MIN_LABEL, min(longest, free - MIN_BAR))
    bar = max(MIN_BAR, min(MAX_BAR, free - label))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("block", no_wrap=True, overflow="ellipsis", max_width=label)
    table.add_column("fill", no_wrap=True)
    table.add_column("characters", justify="right", no_wrap=True)
    table.add_column("version", justify="right", no_wrap=True)
    table.add_column("last by", no_wrap=True, overflow="ellipsis", max_width=MAX_AUTHOR)
    table.add_column("when", justify="right", no_wrap=True)
    for state in states:
        entry = last.get(state.label)
        table.add_row(
            Text(visible(state.label), "dim" if state.view.read_only else ""),
            build_bar(state.length, state.limit, bar),
            Text(sizes[state.label], _style_of_fill(state.length, state.limit)),
            _build_version(state, entry),
            Text(visible(entry.author) if entry else ""),
            Text(tell_age(entry.created_at, now) if entry else ""),
        )
    return table


def build_notes(states: Sequence[BlockState], last: Mapping[str, VersionEntry]) -> Iterator[Text]:
    """Yield what the table can only hint at."""
    changed = [state.label for state in states if state.version is None and state.label in last]
    if changed:
        yield Text(
            f"* somebody wrote around han-solo: {', '.join(changed)}. "
            "`han-solo blocks watch --once` makes it a version.",
            "yellow",
        )
    over = [state.label for state in states if state.length > state.limit]
    if over:
        yield Text(f"Over the limit, so no write fits: {', '.join(over)}.", "red")


def build_bar(length: int, limit: int, cells: int) -> Text:
    """Build a bar that is as full as the block, coloured by how full that is."""
    share = min(1.0, length / limit) if limit else 1.0
    eighths = round(share * cells * 8)
    if length and not eighths:
        eighths = 1  # something is there
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + (_PARTS[rest] if rest else "")
    text = Text(drawn, _style_of_fill(length, limit))
    text.append("░" * (cells - len(drawn)), "dim")
    return text


def _style_of_fill(length: int, limit: int) -> str:
    share = length / limit if limit else 1.0
    if length > limit:
        return "bold red"
    if share >= TOO_FULL:
        return "red"
    return "yellow" if share >= NEARLY_FULL else "green"


def _build_version(state: BlockState, entry: VersionEntry | None) -> Text:
    if entry is None:
        return Text("none", "dim")
    if state.version is None:
        return Text(f"{entry.number}*", "yellow")
    return Text(str(state.version))


def build_history(
    entries: Sequence[VersionEntry], before: VersionEntry | None, now: datetime
) -> Table:
    """Build the table of versions, newest first.

    Args:
        entries: what is shown.
        before: the version before the oldest of them, for its difference in size.
        now: the time.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("version", justify="right", no_wrap=True)
    table.add_column("when", justify="right", no_wrap=True)
    table.add_column("who", no_wrap=True, overflow="ellipsis", max_width=16)
    table.add_column("how", no_wrap=True)
    table.add_column("characters", justify="right", no_wrap=True)
    table.add_column("change", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for entry, older in zip(entries, [*entries[1:], before], strict=True):
        table.add_row(
            str(entry.number),
            tell_age(entry.created_at, now),
            Text(visible(entry.author)),
            Text(tell_origin(entry), _STYLE_OF_ORIGIN.get(entry.origin, "")),
            f"{entry.length:,}",
            _build_change(entry.length - older.length if older else entry.length),
            Text(visible(entry.reason)),
        )
    return table


def _build_change(change: int) -> Text:
    return Text(f"{change:+,}" if change else "0", "green" if change > 0 else "red" * (change < 0))


def build_state(state: BlockState) -> Text:
    """Say in one line what a block is now."""
    version = f"version {state.version}" if state.version else "not a version yet"
    kind = ", read-only" if state.view.read_only else ""
    size = f"{state.length:,} of {state.limit:,} characters"
    return Text(f"{visible(state.label)}: {version}, {size}{kind}")


def build_entry(entry: VersionEntry, now: datetime) -> Text:
    """Say in one line what a version is."""
    text = Text(visible(entry.label), "bold")
    text.append(f" version {entry.number}, ", "not bold")
    text.append(
        f"{entry.length:,} characters, {tell_origin(entry)} by {visible(tell_author(entry))}, "
    )
    text.append(f"{tell_age(entry.created_at, now)} ago" if entry.created_at <= now else "just now")
    if entry.reason:
        text.append(f": {visible(entry.reason)}", "dim")
    return text


def build_event(label: str, event: Event) -> Text:
    """Say in one line what was found at a block and put right."""
    text = Text(f"{event.kind.replace('_', ' ')} ", _STYLE_OF_EVENT.get(event.kind, ""))
    text.append(visible(label), "bold")
    text.append(f": {visible(event.sentence)}")
    return text


def build_events(label: str, events: Iterable[Event]) -> Iterator[Text]:
    for event in events:
        yield build_event(label, event)


def tell_author(entry: VersionEntry) -> str:
    """Return who wrote it: the name, and the kind where the name does not say it."""
    if entry.author.replace("-", "_") == entry.author_kind:
        return entry.author
    return f"{entry.author} ({entry.author_kind.replace('_', '-')})"


def tell_origin(entry: VersionEntry) -> str:
    words = ORIGINS.get(entry.origin, entry.origin)
    return f"{words} {entry.source}" if entry.origin == "restored" else words


def tell_age(moment: datetime, now: datetime) -> str:
    """Return how long ago it was, in the largest unit that fits."""
    seconds = max(0, int((now.astimezone(UTC) - moment.astimezone(UTC)).total_seconds()))
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
