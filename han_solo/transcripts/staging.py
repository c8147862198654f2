"""Records as the table has them that a piece of a file is copied into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from .discover import Found
from .model import SIDE, Row

COLUMNS: Final = (
    "session_id", "parent_id", "agent_id", "project", "file_offset", "kind", "subtype", "uuid",
    "parent_uuid", "at", "text", "raw", "digest", "message_id", "model", "input_tokens",
    "output_tokens", "cache_write_tokens", "cache_read_tokens",
)  # fmt: skip


def read_records(found: Found, rows: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as the staging table has them."""
    side_agent, of_file = found.side_agent, found.session
    for row in rows:
        session = row.session_id or of_file or found.path
        # A file that is named after a side agent names it better than a record that only says
        # that it is of one.
        named = None if row.agent_id == SIDE else row.agent_id
        agent = named or side_agent or row.agent_id
        parent = session if agent else None
        usage = row.usage or (None, None, None, None)
        yield (
            f"{session}/{agent}" if agent else session,
            parent,
            agent,
            row.cwd or found.project,
            row.offset,
            row.kind,
            row.subtype,
            row.uuid or "",
            row.parent_uuid,
            row.at,
            row.text,
            row.raw,
            row.digest,
            row.message_id,
            row.model,
            *usage,
        )
