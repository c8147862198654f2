"""The gateway's part for archival memory: an agent's passages, read to the end and proved so.

A cursor whose passage is gone is answered with an empty page and a 200 (measured), which looks like
the end. So each page begins with the last passage of the page before it; one that does not says
that the list changed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import quote

import httpx

from han_solo.errors import LettaUnavailable

from . import fields
from .agents import AgentCalls

PAGE_ROWS: Final = 50
"""Each passage comes with its vector, padded to 4,096 numbers: some 2 MB a page."""


@dataclass(frozen=True, slots=True)
class ArchivalPassage:
    """A passage of Letta's archival memory. ``created_at`` is aware."""

    id: str
    text: str = field(repr=False)
    tags: tuple[str, ...]
    created_at: datetime | None


class ArchivalCalls(AgentCalls):
    """Reads archival memory; nothing here writes it."""

    async def read_archival(
        self, agent_id: str, *, page_rows: int = PAGE_ROWS
    ) -> AsyncIterator[ArchivalPassage]:
        """Yield an agent's passages, oldest first; none for an agent that is not there.

        Args:
            agent_id: the agent.
            page_rows: passages in one answer, at least 2.

        Raises:
            LettaUnavailable: a passage was deleted meanwhile, so the rest can not be told.
        """
        overlap: tuple[str, str] | None = None
        while True:
            page = await self._fetch_archival(agent_id, page_rows, overlap and overlap[0])
            if overlap and (not page or page[0].id != overlap[1]):
                raise LettaUnavailable(
                    f"The archival memory of {agent_id} changed while it was read.",
                    hint="Try again when nobody deletes from it; nothing was decided on it.",
                )
            for passage in page[1:] if overlap else page:
                yield passage
            if len(page) < page_rows:
                return
            overlap = (page[-2].id, page[-1].id)

    async def _fetch_archival(
        self, agent_id: str, rows: int, after: str | None
    ) -> list[ArchivalPassage]:
        params: dict[str, object] = {"limit": rows, "ascending": True}
        if after is not None:
            params["after"] = after
        body = await self._link.read(
            f"reading the archival memory of {agent_id}",
            lambda letta: letta.get(
                f"/v1/agents/{quote(agent_id, safe='')}/archival-memory",
                cast_to=httpx.Response,
                options={"params": params},
            ),
        )
        return [
            _parse(fields.as_object(item, "passage")) for item in fields.as_list(body, "passages")
        ]


def _parse(item: fields.Json) -> ArchivalPassage:
    return ArchivalPassage(
        fields.need_str(item, "id", "passage"),
        fields.need_str(item, "text", "passage"),
        fields.strings(fields.opt_list(item.get("tags"))),
        fields.moment(item.get("created_at")),
    )
