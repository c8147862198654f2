"""A file piece by piece, cut at line ends and parsed; and how the place read is known again.

Runs in a thread, so that a piece is parsed while Postgres takes in the one before.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import dataclass
from typing import Final

from .model import Parsed
from .parse import parse

PIECE_BYTES: Final = 8 * 1024 * 1024
"""Large enough that a commit costs little, small enough that one does not fill the memory."""

TAIL_BYTES: Final = 256
"""Of what was read last: other bytes at that place are another file."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a file, parsed up to ``read_to``; ``is_end`` when nothing follows it for now."""

    parsed: Parsed
    read_to: int
    tail: bytes
    is_end: bool


async def parse_next(descriptor: int, at: int) -> Piece | None:
    """Read and parse the piece that begins at ``at``; None when there is nothing."""
    return await asyncio.to_thread(_parse_next, descriptor, at)


def hash_tail(descriptor: int, read_to: int) -> bytes:
    """Return the hash of the last bytes before a place; empty at the beginning."""
    length = min(TAIL_BYTES, read_to)
    if not length:
        return b""
    return hashlib.blake2b(os.pread(descriptor, length, read_to - length), digest_size=16).digest()


def _parse_next(descriptor: int, at: int) -> Piece | None:
    piece = b""
    while True:
        data = os.pread(descriptor, PIECE_BYTES, at + len(piece))
        piece += data
        is_end = len(data) < PIECE_BYTES
        # Only the end of the file may be an unfinished line that is whole by chance.
        usable = piece if is_end else piece[: piece.rfind(b"\n") + 1]
        if usable or is_end:
            break  # else a line longer than a piece
    if not usable:
        return None
    parsed = parse(usable, at)
    read_to = at + parsed.consumed
    return Piece(parsed, read_to, hash_tail(descriptor, read_to), is_end)
