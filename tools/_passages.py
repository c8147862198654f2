"""How passages are shown in replies: as data, with whose words they are and how they came.

Text stands in a field of its own beside its author and origin, and the reply says that it is data:
text can not break out of a JSON string, as it could out of marks around it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ._fitting import (
    ABOUT,
    MAX_ITEMS_CHARS,
    keep_what_fits,
    show_time,
    show_time_or_none,
    size,
)

if TYPE_CHECKING:
    from han_solo.memory.passage_model import Change, Linked, Note, Passage, Whole, Written

SHOWN_CHARS: Final = 12_000
"""Of a long passage in one reply; ``offset_chars`` shows the rest."""


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage; times are ISO 8601, UTC. ``written_by`` is the authenticated caller."""

    passage_id: int
    author: str
    origin: str
    written_by: str
    agent_id: str | None
    source: str
    thread: str | None
    scope: str
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    tier: str
    importance: float
    happened_at: str
    created_at: str
    archived_at: str | None
    title: str
    text: str
    text_chars: int
    next_offset_chars: int | None


@dataclass(frozen=True, slots=True)
class ShownNote:
    """What was added to a passage later."""

    note_id: int
    created_at: str
    written_by: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownLink:
    """A passage that is linked with another one; ``beginning`` is the first of its text."""

    passage_id: int
    kind: str
    note: str
    direction: str
    author: str
    is_archived: bool
    beginning: str


@dataclass(frozen=True, slots=True)
class OnePassage:
    """What was done, and the passage as it is stored now."""

    done: str
    changed: bool
    about: str
    passage: ShownPassage


@dataclass(frozen=True, slots=True)
class WholePassage:
    """A passage with its notes and links, and how often it was found, read or used."""

    summary: str
    about: str
    passage: ShownPassage
    notes: tuple[ShownNote, ...]
    links: tuple[ShownLink, ...]
    access_count: int
    accessed_at: str | None


@dataclass(frozen=True, slots=True)
class OneNote:
    """The note as it is stored."""

    done: str
    note: ShownNote


@dataclass(frozen=True, slots=True)
class Links:
    """What a passage is linked with."""

    summary: str
    about: str
    links: tuple[ShownLink, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What was done."""

    done: str
    changed: bool


def show_written(written: Written) -> OnePassage:
    passage = written.passage
    chunks = "" if written.chunks == 1 else f" in {written.chunks} chunks"
    found = (
        "it is found by words and by meaning"
        if written.pending is None
        else f"it is found by its words alone until its vector is made: {written.pending}"
    )
    done = f"Passage {passage.id} was written{chunks}; {found}".rstrip(".")
    return OnePassage(f"{done}.", changed=True, about=ABOUT, passage=show_passage(passage))


def show_change(change: Change, became: str) -> OnePassage:
    word = "is now" if change.changed else "was already"
    rest = "" if change.changed else "; nothing was changed"
    return OnePassage(
        f"Passage {change.passage.id} {word} {became}{rest}.",
        changed=change.changed,
        about=ABOUT,
        passage=show_passage(change.passage),
    )


def show_whole(whole: Whole, offset_chars: int) -> WholePassage:
    passage = show_passage(whole.passage, offset_chars)
    room = MAX_ITEMS_CHARS - size(passage)
    notes = keep_what_fits([show_note(note) for note in whole.notes], room * 3 // 4)
    links = keep_what_fits([show_link(link, whole.passage.id) for link in whole.links], room // 4)
    missing = len(whole.notes) - len(notes) + len(whole.links) - len(links)
    parts = [
        f"Passage {whole.passage.id} is {_state(whole.passage)}",
        f"{len(whole.notes)} note{'' if len(whole.notes) == 1 else 's'}",
        f"{len(whole.links)} link{'' if len(whole.links) == 1 else 's'}",
    ]
    if missing:
        parts.append(f"{missing} of these did not fit")
    if passage.next_offset_chars is not None:
        parts.append("the text goes on: call again with offset_chars=next_offset_chars")
    return WholePassage(
        summary="; ".join(parts) + ".",
        about=ABOUT,
        passage=passage,
        notes=notes,
        links=links,
        access_count=whole.access_count,
        accessed_at=show_time_or_none(whole.accessed_at),
    )


def show_note(note: Note) -> ShownNote:
    return ShownNote(note.id, show_time(note.created_at), note.principal, note.text)


def show_link(link: Linked, passage_id: int) -> ShownLink:
    return ShownLink(
        passage_id=link.passage_id,
        kind=link.kind,
        note=link.note,
        direction="to" if link.from_id == passage_id else "from",
        author=link.author,
        is_archived=link.is_archived,
        beginning=link.beginning,
    )


def show_passage(passage: Passage, offset_chars: int = 0) -> ShownPassage:
    shown = _cut(passage.text[offset_chars:])
    end = offset_chars + len(shown)
    return ShownPassage(
        passage_id=passage.id,
        author=passage.author,
        origin=passage.origin,
        written_by=passage.principal,
        agent_id=passage.agent_id,
        source=passage.source,
        thread=passage.thread,
        scope=passage.scope,
        tags=passage.tags,
        entities=passage.entities[:20],
        tier=passage.tier,
        importance=round(passage.importance, 3),
        happened_at=show_time(passage.happened_at),
        created_at=show_time(passage.created_at),
        archived_at=show_time_or_none(passage.archived_at),
        title=passage.title,
        text=shown,
        text_chars=len(passage.text),
        next_offset_chars=end if end < len(passage.text) else None,
    )


def _state(passage: Passage) -> str:
    if passage.archived_at is not None:
        return "archived"
    return passage.tier


def _cut(text: str) -> str:
    """Return as much of a text as a reply holds; escapes make some characters six times as long."""
    shown = text[:SHOWN_CHARS]
    while len(json.dumps(shown, ensure_ascii=False)) > SHOWN_CHARS * 2:
        shown = shown[: len(shown) // 2]
    return shown
