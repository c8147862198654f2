"""A line of a file of passages: one JSON object, with all that one memory tells another of it.

Only ``text`` must be there. ``key`` names the passage in any memory, so that a second import adds
nothing; a line without one is named by what it holds.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Any, Final

import msgspec

from ..errors import UsageError
from ..principals import Principal
from ..store.text import require_storable
from .passage_links import MAX_NOTE_CHARS as MAX_LINK_NOTE_CHARS
from .passage_links import check_kind
from .passage_model import (
    DEFAULT_SCOPE,
    MAX_NAME_CHARS,
    MAX_NOTE_CHARS,
    Draft,
    Incoming,
    KeptNote,
    Provenance,
    parse_time,
)

_OWN_KEY: Final = re.compile(r"passage-(\d{1,18})-\d{8}T\d{12}-[0-9a-f]{12}")


class NoteLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A note on a passage."""

    text: str
    created_at: str | None = None
    written_by: str | None = None
    agent_id: str | None = None


class LinkLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A link that leads from a passage to the one of that key."""

    to: str
    kind: str = "related"
    note: str = ""
    created_at: str | None = None
    written_by: str | None = None
    agent_id: str | None = None


class PassageLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A passage. Times are ISO 8601; one without a zone is UTC."""

    key: str | None = None
    text: str
    title: str = ""
    author: str = ""
    origin: str = "inferred"
    source: str = ""
    thread: str | None = None
    scope: str = DEFAULT_SCOPE
    tags: tuple[str, ...] = ()
    tier: str = "standard"
    importance: float = 0.5
    happened_at: str | None = None
    created_at: str | None = None
    written_by: str | None = None
    agent_id: str | None = None
    archived_at: str | None = None
    archived_by: str | None = None
    notes: tuple[NoteLine, ...] = ()
    links: tuple[LinkLine, ...] = ()

    def name(self) -> str:
        """Return its key, or one of what it holds."""
        if self.key is not None:
            return self.key
        return f"sha256-{hashlib.sha256(msgspec.json.encode(self)).hexdigest()}"


def read_own_id(key: str) -> int | None:
    """Return the id in the key of a passage that was not imported itself; None in any other."""
    found = _OWN_KEY.fullmatch(key)
    return int(found[1]) if found else None


def read_line(line: PassageLine, principal: Principal, now: datetime) -> Incoming:
    """Check a line and return what is to be written of it.

    Args:
        line: the line.
        principal: who imports it, and so wrote what the line names no writer of.
        now: when what has no time was written.

    Raises:
        UsageError: a part of it can not be written.
    """
    draft = Draft(
        text=line.text,
        title=line.title,
        author=line.author,
        origin=_as_is(line.origin),
        source=line.source,
        thread=line.thread,
        scope=line.scope,
        tags=line.tags,
        tier=_as_is(line.tier),
        importance=line.importance,
        happened_at=parse_time(line.happened_at or line.created_at, "happened_at"),
        import_key=line.name(),
    )
    draft.check()
    archived = None
    if line.archived_at is not None:
        if line.tier == "foundational":
            raise UsageError("It is foundational and archived; a passage is one of them at most.")
        archived = _provenance(line.archived_by, None, line.archived_at, principal, now)
    for link in line.links:
        _check_link(link, draft.import_key)
    names_writer = line.written_by is not None or line.created_at is not None
    return Incoming(
        draft=draft,
        provenance=_provenance(line.written_by, line.agent_id, line.created_at, principal, now)
        if names_writer
        else None,
        notes=tuple(_read_note(note, principal, now) for note in line.notes),
        archived=archived,
    )


def read_link(link: LinkLine, principal: Principal, now: datetime) -> Provenance:
    """Return who made a link, and when."""
    return _provenance(link.written_by, link.agent_id, link.created_at, principal, now)


def _read_note(note: NoteLine, principal: Principal, now: datetime) -> KeptNote:
    require_storable(note.text, "A note", max_chars=MAX_NOTE_CHARS)
    return KeptNote(
        note.text, _provenance(note.written_by, note.agent_id, note.created_at, principal, now)
    )


def _check_link(link: LinkLine, key: str | None) -> None:
    require_storable(link.to, "The key that a link leads to", max_chars=MAX_NAME_CHARS)
    require_storable(link.note, "A link's note", max_chars=MAX_LINK_NOTE_CHARS, min_chars=0)
    check_kind(link.kind)
    if link.to == key:
        raise UsageError("It is linked with itself.")
    parse_time(link.created_at, "created_at of a link")


def _provenance(
    written_by: str | None,
    agent_id: str | None,
    at: str | None,
    principal: Principal,
    now: datetime,
) -> Provenance:
    for value, name in ((written_by, "written_by"), (agent_id, "agent_id")):
        if value is not None:
            require_storable(value, f"Its {name}", max_chars=MAX_NAME_CHARS)
    who = principal.name if written_by is None else written_by
    return Provenance(who, agent_id, parse_time(at, "created_at") or now)


def _as_is(value: str) -> Any:
    """Hand on what ``Draft.check`` refuses by name if it is none of the choices."""
    return value
