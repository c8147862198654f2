"""What is known of a file that was read: how far, and how it is recognised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import pieces
from .discover import Found


@dataclass(slots=True)
class KnownFile:
    """What is known of a file."""

    id: int
    path: str
    device: int
    inode: int
    generation: int
    read_to: int
    tail: bytes
    size: int
    changed_ns: int

    def is_as_it_was(self, found: Found) -> bool:
        return (
            self.device == found.device
            and self.inode == found.inode
            and self.size == found.size
            and self.changed_ns == found.changed_ns
        )

    def goes_on_in(self, found: Found, descriptor: int) -> bool:
        """Say whether a file is the one that was read, with more at its end."""
        is_same = (self.device, self.inode) == (found.device, found.inode)
        if not is_same or found.size < self.read_to:
            return False
        return pieces.hash_tail(descriptor, self.read_to) == self.tail

    @classmethod
    def of(cls, row: Any) -> KnownFile:
        """Make it of a row."""
        fields = dict(row)
        fields["inode"], fields["changed_ns"] = int(fields["inode"]), int(fields["changed_ns"])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a file was read, and how the disk had it then."""

    read_to: int
    tail: bytes
    size: int
    changed_ns: int
