"""What is said of core blocks: their state, their versions, what a write and an inspection came to.

Frozen values without any behaviour of their own; the service makes them, and the tools, the
commands and the message discipline show them. Lengths and limits are in characters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, Protocol

from ..letta.views import BlockView
from ..principals import Principal

AuthorKind = Literal["agent", "client", "operator", "job", "outside", "han_solo"]
"""``outside`` is whoever wrote into Letta around us; ``han_solo`` is the caretaker itself."""

Origin = Literal["seed", "write", "restored", "adopted_outside", "revert_repaired", "merged"]
"""How a version came to be.

``seed``: what the block was made with. ``write`` and ``restored``: a verified write of ours.
``adopted_outside``: found in Letta, written around us. ``revert_repaired``: the version before it
was put back, since Letta held an older one. ``merged``: an outside edit was made on an older
version, and what it lacked was put back into it.
"""

EventKind = Literal[
    "first_seen", "settled", "dropped", "adopted", "repaired", "merged", "overwritten"
]
"""What an access found and did before anything else; see ``Event``."""

DEFAULT_WRITERS: Final = ("agent", "operator")
"""Of a block that the spec does not declare: those of a declared one that names none."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes: the kind decides what may be written, the name is for the record.

    A job writes as kind ``job`` under its own name, such as ``dream``.
    """

    kind: AuthorKind
    name: str

    @classmethod
    def of(cls, principal: Principal) -> Author:
        """Return the author that a caller of the bridge is."""
        return cls(principal.kind, principal.name)


OUTSIDE: Final = Author("outside", "outside")
CARETAKER: Final = Author("han_solo", "han-solo")


class _Declared(Protocol):
    """A block of the agent spec."""

    @property
    def label(self) -> str: ...
    @property
    def writers(self) -> tuple[str, ...]: ...
    @property
    def seed(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Rights:
    """Who may write which block, as the agent spec declares it."""

    writers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seeds: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, blocks: Iterable[_Declared]) -> Rights:
        """Take them from the blocks of a spec."""
        declared = tuple(blocks)
        return cls(
            {block.label: block.writers for block in declared},
            {block.label: block.seed for block in declared},
        )

    def writers_of(self, label: str) -> tuple[str, ...]:
        return self.writers.get(label, DEFAULT_WRITERS)

    def may_write(self, author: Author, label: str) -> bool:
        if author.kind == "han_solo":  # it puts versions back, and has no text of its own
            return True
        writers = self.writers_of(label)
        return author.kind in writers or (author.kind == "job" and author.name in writers)


@dataclass(frozen=True, slots=True)
class BlockState:
    """A block as it is in Letta now.

    ``version`` is the number of the last version when the block holds exactly that, else None: it
    was never recorded, or somebody wrote around us since; the next write or inspection adopts it.
    ``is_open``: a write of ours is under way, or was cut short and is settled by the next access.
    """

    view: BlockView
    version: int | None
    sha256: str
    writers: tuple[str, ...]
    is_open: bool = False

    @property
    def label(self) -> str:
        return self.view.label

    @property
    def value(self) -> str:
        return self.view.value

    @property
    def length(self) -> int:
        return len(self.view.value)

    @property
    def limit(self) -> int:
        return self.view.limit


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """One version, without its text.

    ``label`` and ``agent_id`` are what they were then; versions belong to Letta's block, which may
    be shared or relabelled. ``source`` is the number of another version that this one came of: the
    one restored, the one that was put back, or the older one that an outside edit was made on.
    """

    block_id: str
    number: int
    label: str
    agent_id: str
    sha256: str
    length: int
    author_kind: AuthorKind
    author: str
    reason: str
    origin: Origin
    source: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Version(VersionEntry):
    """One version with its text."""

    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was found at a block and put right, in one sentence for people.

    ``version`` is the version that came of it, None when none did. ``undone`` are versions of ours
    that Letta no longer held.

    ``first_seen``: its text became version 1. ``settled``: a write that was cut short had landed,
    and is a version now. ``dropped``: it had not landed. ``adopted``: a text that somebody wrote
    around us is a version now. ``repaired``: Letta held an older version again, and the last one
    was put back. ``merged``: an outside edit of an older version and what it had undone were
    joined. ``overwritten``: they could not be joined: the outside text stands, the undone versions
    are in the history.
    """

    kind: EventKind
    sentence: str
    version: int | None = None
    undone: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockWrite:
    """A verified write: the block was read back and held exactly this.

    ``changed`` is false when the block held it already; ``version`` is then the present one.
    ``events`` are what was found on the way.
    """

    label: str
    block_id: str
    version: int
    changed: bool
    sha256: str
    length: int
    limit: int
    events: tuple[Event, ...] = ()

    @property
    def adopted(self) -> tuple[int, ...]:
        """Return the versions that outside edits became on the way."""
        return tuple(e.version for e in self.events if e.kind == "adopted" and e.version)

    @property
    def reverted(self) -> tuple[int, ...]:
        """Return the versions of ours that were found undone in Letta."""
        return tuple(number for event in self.events for number in event.undone)


@dataclass(frozen=True, slots=True)
class Inspection:
    """What an inspection of one block found and put right; no events: all was as recorded."""

    label: str
    block_id: str
    version: int
    sha256: str
    length: int
    limit: int
    events: tuple[Event, ...] = ()


def digest(value: str) -> str:
    """Return the SHA-256 of a block's value, as hex."""
    return hashlib.sha256(value.encode()).hexdigest()
