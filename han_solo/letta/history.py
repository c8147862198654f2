"""The agent's messages in Letta of a stretch of time, read page by page.

The SDK's own paging repeats an item at each seam, so pages are asked for here, newest first, each
beginning before the oldest message seen, and a message that comes again is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import quote

import httpx

from . import fields
from .link import Link

PAGE_ROWS: Final = 200
MAX_PAGES: Final = 50
"""Ten thousand messages: more than a day holds."""

SPOKEN: Final = {"user_message": "user", "assistant_message": "agent"}
"""What somebody said; calls, returns and reasoning are not."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One message that a person or the agent said."""

    id: str
    at: datetime
    speaker: str
    text: str = field(repr=False)


async def fetch_spoken(
    link: Link, agent_id: str, since: datetime, until: datetime
) -> tuple[Spoken, ...]:
    """Fetch what was said in ``[since, until)``, oldest first."""
    found: dict[tuple[str, str], Spoken] = {}
    seen: set[str] = set()
    before: str | None = None
    for _ in range(MAX_PAGES):
        page = await _fetch_page(link, agent_id, before)
        fresh = [item for item in page if fields.need_str(item, "id", "message") not in seen]
        if not fresh:
            break
        for item in fresh:
            if (message := _parse(item)) and since <= message.at < until:
                found.setdefault((message.id, message.speaker), message)
        seen.update(fields.need_str(item, "id", "message") for item in fresh)
        oldest = fresh[-1]
        before = fields.need_str(oldest, "id", "message")
        if (at := fields.moment(oldest.get("date"))) is not None and at < since:
            break
    return tuple(sorted(found.values(), key=lambda message: message.at))


async def _fetch_page(link: Link, agent_id: str, before: str | None) -> list[fields.Json]:
    params: dict[str, object] = {"limit": PAGE_ROWS, "order": "desc"}
    if before is not None:
        params["before"] = before
    body = await link.read(
        f"reading the messages of the agent {agent_id}",
        lambda letta: letta.get(
            f"/v1/agents/{quote(agent_id, safe='')}/messages",
            cast_to=httpx.Response,
            options={"params": params},
        ),
    )
    return [fields.as_object(item, "message") for item in fields.as_list(body, "messages")]


def _parse(item: fields.Json) -> Spoken | None:
    speaker = SPOKEN.get(str(item.get("message_type")))
    at = fields.moment(item.get("date"))
    text = _text(item.get("content"))
    if speaker is None or at is None or not text.strip():
        return None
    return Spoken(fields.need_str(item, "id", "message"), at, speaker, text)


def _text(content: object) -> str:
    """Return the text of a message's content: a string, or parts of which some are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [fields.as_object(part, "part") for part in content if isinstance(part, dict)]
    return "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))
