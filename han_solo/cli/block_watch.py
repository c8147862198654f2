"""``han-solo blocks watch``: look again and again, and tell what was found and what was written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rich.text import Text

from ..blocks.model import Inspection, VersionEntry
from ..errors import DatabaseRefused, HanSoloError
from . import block_json, run
from .block_session import BlockSession
from .block_text import say
from .block_view import FIRST_SEEN, build_entry, build_event


@dataclass(slots=True)
class Watch:
    """What was seen so far. ``found`` counts what was put right."""

    session: BlockSession
    label: str | None
    as_json: bool
    seen: dict[str, int] = field(default_factory=dict)
    found: int = 0
    _away: str | None = None

    async def run(self, interval_s: float) -> None:
        """Look until it is stopped; a part that is away is told once, and waited for."""
        while True:
            try:
                await self.look()
            except DatabaseRefused:
                raise
            except HanSoloError as error:
                if not error.retryable:
                    raise
                self._tell_away(error)
            else:
                self._tell_back()
            await asyncio.sleep(interval_s)

    async def look(self) -> int:
        """Inspect once, tell what is new since the last look, and return how many blocks are."""
        inspections = await self.session.blocks.inspect(self.label)
        for inspection in inspections:
            for entry in await self._load_new(inspection):
                self._tell_entry(entry)
            for event in inspection.events:
                self.found += event.kind != FIRST_SEEN
                if self.as_json:
                    self._print({"label": inspection.label, "event": block_json.of_event(event)})
                else:
                    self._say(build_event(inspection.label, event))
            self.seen[inspection.block_id] = inspection.version
        return len(inspections)

    async def _load_new(self, inspection: Inspection) -> Sequence[VersionEntry]:
        """Return the versions that were written since the last look, oldest first.

        Those that this look made are told as what was found.
        """
        seen = self.seen.get(inspection.block_id)
        if seen is None or seen >= inspection.version:
            return ()
        entries = await self.session.versions.list_entries(
            inspection.block_id, limit_rows=inspection.version - seen, before=None
        )
        made = {event.version for event in inspection.events}
        return [
            entry for entry in reversed(entries) if entry.number > seen and entry.number not in made
        ]

    def _tell_entry(self, entry: VersionEntry) -> None:
        if self.as_json:
            self._print({"label": entry.label, "version": block_json.of_entry(entry)})
        else:
            self._say(build_entry(entry, datetime.now(UTC)))

    def _tell_away(self, error: HanSoloError) -> None:
        if self._away != error.message:
            self._away = error.message
            say(run.err(), f"{_now()} {error.message}", style="yellow")

    def _tell_back(self) -> None:
        if self._away is not None:
            self._away = None
            say(run.err(), f"{_now()} It is back.", style="green")

    def _say(self, line: Text) -> None:
        say(run.out(), Text.assemble((f"{_now()} ", "dim"), line))

    def _print(self, body: dict[str, object]) -> None:
        print(json.dumps({"at": datetime.now(UTC).isoformat(), **body}), flush=True)


def _now() -> str:
    return f"{datetime.now():%H:%M:%S}"  # noqa: DTZ005 - the clock on the user's wall
