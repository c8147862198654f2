"""Threads: what chunks have their neighbours in. Who writes into one takes turns with others."""

from __future__ import annotations

from collections.abc import Sequence

from ..store.database import Connection
from .statements import PASSAGES


async def lock_threads(connection: Connection, threads: Sequence[str | None]) -> None:
    """Have writers of these threads take turns, in one order so that none waits in a circle."""
    for thread in sorted({thread for thread in threads if thread is not None}):
        await PASSAGES.lock_thread(connection, thread=thread)
