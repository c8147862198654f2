"""What goes into Postgres about a block and comes out of it: the last version, texts, intents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict
from uuid import UUID

import asyncpg

from .model import Author, AuthorKind, Origin, digest


@dataclass(frozen=True, slots=True)
class Head:
    """The last version of a block, and whether a write of it is open."""

    number: int
    sha256: str
    is_open: bool = False


class Columns(TypedDict):
    block_id: str
    label: str
    agent_id: str
    value: str
    sha256: str
    author_kind: AuthorKind
    author: str
    reason: str
    origin: Origin
    source: int | None


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a block, with what the record says of it; not a version yet."""

    block_id: str
    label: str
    agent_id: str
    value: str = field(repr=False)
    author: Author
    reason: str
    origin: Origin
    source: int | None = None

    @property
    def sha256(self) -> str:
        return digest(self.value)

    def columns(self) -> Columns:
        return {
            "block_id": self.block_id,
            "label": self.label,
            "agent_id": self.agent_id,
            "value": self.value,
            "sha256": self.sha256,
            "author_kind": self.author.kind,
            "author": self.author.name,
            "reason": self.reason,
            "origin": self.origin,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Intent:
    """A text that is about to be sent to Letta.

    ``base`` is the version that it was made on; ``age_s`` is how long ago, by Postgres' clock.
    """

    intent_id: UUID
    base: int
    text: Text
    age_s: float = 0.0

    @classmethod
    def of(cls, row: asyncpg.Record) -> Intent:
        return cls(
            intent_id=row["intent_id"],
            base=row["base"],
            text=Text(
                block_id=row["block_id"],
                label=row["label"],
                agent_id=row["agent_id"],
                value=row["value"],
                author=Author(row["author_kind"], row["author"]),
                reason=row["reason"],
                origin=row["origin"],
                source=row["source"],
            ),
            age_s=row["age_s"],
        )
