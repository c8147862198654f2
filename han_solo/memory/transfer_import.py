"""Bringing passages in from files that were checked: rows, notes, and then the links between them.

All of it adds: what is there already stays as it is, and a second run adds nothing. Each batch is
written whole or not at all, so a run that was cut short goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, TypeVar

from ..errors import UsageError
from ..principals import Principal
from ..store.database import Database
from .passage_import import Tell
from .passage_model import Incoming, Provenance
from .passages import Passages
from .transfer_line import LinkLine, PassageLine, read_line, read_link, read_own_id
from .transfer_queries import TRANSFER
from .transfer_read import Files, read_lines

BATCH: Final = 10_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Brought:
    """What an import came to.

    ``known`` passages were there already; ``lost_links`` lead to passages that are neither in the
    files nor in the memory. ``pending`` says why vectors are still to be made, if they are.
    """

    new: int
    known: int
    links: int
    lost_links: int
    pending: str | None


async def count_known(db: Database, files: Files) -> int:
    """Return how many passages of the files the memory has already.

    Raises:
        UsageError: a file can not be read.
    """
    known = 0
    for batch in _batches(_lines(files)):
        known += len(await find_keys(db, [line.name() for line in batch]))
    return known


async def bring_in(
    passages: Passages,
    principal: Principal,
    files: Files,
    *,
    now: datetime,
    tell: Tell | None = None,
) -> Brought:
    """Write what is in the files and not in the memory.

    Args:
        passages: the memory.
        principal: who imports.
        files: what ``check_files`` found nothing wrong with.
        now: the time.
        tell: is told how far it is.

    Raises:
        UsageError: a file changed since it was checked; what was written until then is whole.
    """
    known = links = 0

    async def pick_new() -> AsyncIterator[Sequence[Incoming]]:
        nonlocal known, links
        for batch in _batches(_lines(files)):
            there = await find_keys(passages.db, [line.name() for line in batch])
            known += sum(line.name() in there for line in batch)
            links += sum(len(line.links) for line in batch)
            yield [read_line(line, principal, now) for line in batch if line.name() not in there]

    imported = await passages.import_batches(principal, pick_new(), tell)
    made = lost = 0
    if links:
        made, lost = await _link(passages.db, principal, files, now)
    return Brought(
        len(imported.passage_ids), known + imported.skipped, made, lost, imported.pending
    )


async def _link(db: Database, principal: Principal, files: Files, now: datetime) -> tuple[int, int]:
    """Make the links of the files, now that all passages are there; return how many, and not."""
    made = lost = 0
    linking = ((line.name(), link) for line in _lines(files) for link in line.links)
    for batch in _batches(linking):
        ids = await find_keys(db, {key for name, link in batch for key in (name, link.to)})
        found = [
            (ids[name], ids[link.to], link, read_link(link, principal, now))
            for name, link in batch
            if name in ids and link.to in ids and ids[name] != ids[link.to]
        ]
        lost += len(batch) - len(found)
        made += await _insert_links(db, found)
    return made, lost


async def _insert_links(
    db: Database, found: Sequence[tuple[int, int, LinkLine, Provenance]]
) -> int:
    async with db.transaction() as connection:
        rows = TRANSFER.insert_links(
            connection,
            from_ids=[from_id for from_id, _, _, _ in found],
            to_ids=[to_id for _, to_id, _, _ in found],
            kinds=[link.kind for _, _, link, _ in found],
            notes=[link.note for _, _, link, _ in found],
            principals=[who.principal for _, _, _, who in found],
            agent_ids=[who.agent_id for _, _, _, who in found],
            created_at=[who.created_at for _, _, _, who in found],
        )
        return len([row async for row in rows])


async def find_keys(db: Database, keys: Collection[str]) -> dict[str, int]:
    """Return the passages of this memory that some of these keys name."""
    given = list(keys)
    async with db.connection() as connection:
        return {
            row["key"]: row["id"]
            async for row in TRANSFER.find_keys(
                connection, keys=given, ids=[read_own_id(key) for key in given]
            )
        }


def _lines(files: Files) -> Iterator[PassageLine]:
    for place, line in read_lines(files):
        if isinstance(line, UsageError):
            raise UsageError(
                f"{place} is another one than a moment ago: {line.message}",
                hint="Import it again when nobody writes to it; nothing is doubled.",
            )
        yield line


def _batches(items: Iterator[T]) -> Iterator[list[T]]:
    while batch := list(islice(items, BATCH)):
        yield batch
