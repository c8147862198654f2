"""Passages as a person at a terminal reads them: control characters made visible, times local."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ..memory.passage_model import Linked, Note, Passage, Whole, Written
from ..memory.search_model import Found, Hit, LinkedHit
from . import run
from .block_text import say, visible

INDENT = 4


def show_found(found: Found, zone: ZoneInfo) -> None:
    """Show what a search found, best first, and what that is linked with."""
    console = run.out()
    for hit in found.hits:
        _show_hit(console, hit, found, zone)
    for linked in found.linked:
        _show_linked(console, linked, zone)
    if found.more_linked:
        say(console, f"{found.more_linked} more are linked: han-solo memory show ID", style="dim")
    notes = run.err()
    if found.reason:
        how = "By words alone: " if found.mode == "keyword" else ""
        say(notes, f"{how}{found.reason}", style="yellow")
    if not found.hits:
        say(notes, "Nothing was found; the search is logged as a blind spot.")


def show_written(written: Written) -> None:
    """Say what was written."""
    chunks = "" if written.chunks == 1 else f" in {written.chunks} chunks"
    say(run.out(), f"Passage {written.passage.id} was written{chunks}.")
    if written.pending is not None:
        say(
            run.err(),
            f"It is found by its words alone until `han-solo embed fill` can make its vector: "
            f"{written.pending}",
            style="yellow",
        )


def show_whole(whole: Whole, zone: ZoneInfo) -> None:
    """Show a passage with all that was added to it."""
    console, passage = run.out(), whole.passage
    say(console, _head(passage, zone))
    for name, value in _facts(passage, whole, zone):
        say(console, Text(f"{name:<12}", "dim").append(visible(value), "not dim"))
    console.print()
    say(console, visible(passage.text))
    if whole.notes:
        say(console, "\nNotes", style="bold")
    for note in whole.notes:
        _show_note(console, note, zone)
    if whole.links:
        say(console, "\nLinks", style="bold")
    for link in whole.links:
        _show_link(console, link, passage.id)


def _show_hit(console: Console, hit: Hit, found: Found, zone: ZoneInfo) -> None:
    head = Text(f"{hit.passage_id}", "bold cyan")
    if hit.title:
        head.append(f"  {_in_one_line(hit.title)}", "bold")
    head.append(f"  {_local(hit.happened_at, zone)}", "not bold dim")
    head.append(f"  {visible(hit.author) or hit.principal}, {_came(hit.origin)}", "not bold dim")
    if hit.is_note:
        head.append("  a note on it", "not bold dim")
    elif hit.chunks > 1:
        head.append(f"  part {hit.chunk} of {hit.chunks}", "not bold dim")
    if hit.tier == "foundational":
        head.append("  foundational", "not bold magenta")
    if hit.archived_at is not None:
        head.append("  archived", "not bold yellow")
    say(console, head)
    _indented(console, visible(hit.text.strip()))
    asked = ""
    if len(found.queries) > 1:
        asked = f"; found by query {' and '.join(map(str, hit.found_by))}"
    _indented(console, f"{hit.score:.2f}  {visible(hit.why())}{asked}", style="dim")


def _show_linked(console: Console, hit: LinkedHit, zone: ZoneInfo) -> None:
    way = f"{hit.via_id} -{hit.kind}-> it" if hit.is_to else f"it -{hit.kind}-> {hit.via_id}"
    head = Text(f"{hit.passage_id}", "bold blue")
    if hit.title:
        head.append(f"  {_in_one_line(hit.title)}", "bold")
    head.append(f"  linked: {way}", "not bold dim")
    head.append(f"  {_local(hit.happened_at, zone)}", "not bold dim")
    say(console, head)
    more = "…" if hit.text_chars > len(hit.beginning) else ""
    _indented(console, visible(hit.beginning.strip()) + more)


def _head(passage: Passage, zone: ZoneInfo) -> Text:
    head = Text(f"{passage.id}", "bold cyan")
    if passage.title:
        head.append(f"  {_in_one_line(passage.title)}", "bold")
    head.append(f"  {_local(passage.happened_at, zone)}", "not bold dim")
    return head


def _facts(passage: Passage, whole: Whole, zone: ZoneInfo) -> list[tuple[str, str]]:
    """Return what is known of a passage beside its text; what is empty is left out."""
    found = [
        ("author", f"{passage.author or 'unknown'}, {_came(passage.origin)}"),
        ("written by", f"{passage.principal}, {_local(passage.created_at, zone)}"),
        ("source", passage.source),
        ("thread", passage.thread or ""),
        ("scope", passage.scope),
        ("tags", ", ".join(passage.tags)),
        ("names", ", ".join(passage.entities)),
        ("tier", passage.tier),
        ("importance", f"{passage.importance:g}"),
        ("archived", _local(passage.archived_at, zone) if passage.archived_at else ""),
    ]
    times = f"{whole.access_count} time{'' if whole.access_count == 1 else 's'}"
    last = f", last {_local(whole.accessed_at, zone)}" if whole.accessed_at else ""
    return [(name, value) for name, value in (*found, ("shown, read", times + last)) if value]


def _show_note(console: Console, note: Note, zone: ZoneInfo) -> None:
    say(console, f"{_local(note.created_at, zone)}  {visible(note.principal)}", style="dim")
    _indented(console, visible(note.text))


def _show_link(console: Console, link: Linked, passage_id: int) -> None:
    arrow = f"-{link.kind}->" if link.from_id == passage_id else f"<-{link.kind}-"
    beginning = " ".join(visible(link.beginning).split())
    away = " (archived)" if link.is_archived else ""
    note = f" ({visible(link.note)})" if link.note else ""
    line = Text(f"{arrow} {link.passage_id}{away}{note}", "cyan")
    say(console, line.append(f"  {beginning[:100]}", "default"))


def _indented(console: Console, text: str, *, style: str = "") -> None:
    """Print a text under its head: folded under the indent on a terminal, whole into a pipe."""
    if console.is_terminal:
        console.print(Padding(Text(text, style), (0, 0, 0, INDENT)))
        return
    for line in text.splitlines() or [""]:
        console.print(" " * INDENT + line, markup=False, emoji=False, soft_wrap=True)


def _came(origin: str) -> str:
    return {"user_stated": "said so", "inferred": "inferred", "external": "from outside"}[origin]


def _local(moment: datetime, zone: ZoneInfo) -> str:
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def _in_one_line(text: str) -> str:
    return " ".join(visible(text).split())
