"""``han-solo guards watch``: look again and again, and keep a table of how each guard stands.

On a terminal the table is redrawn in its place; into a pipe a line, with ``--json`` an object, is
printed for each change. A part that is away is told, and waited for.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from ..daemon.choice import Choice
from ..daemon.report import GuardReport
from ..errors import DatabaseRefused, HanSoloError
from . import guard_view, run
from .block_text import say, visible
from .guard_json import of_report
from .guard_output import show_lines
from .guard_session import GuardSession, Row

REDRAW_S: Final = 1.0
"""The ages in the table are seconds old at most."""


@dataclass(slots=True)
class Watch:
    """Guards that are looked at again and again. ``interval_s`` replaces their own intervals."""

    session: GuardSession
    choices: Sequence[Choice]
    interval_s: float | None
    as_json: bool
    _due_at: dict[str, float] = field(default_factory=dict)
    _seen: dict[str, object] = field(default_factory=dict)
    _rows: tuple[Row, ...] = ()
    _away: str | None = None

    async def run(self) -> None:
        """Look until it is stopped."""
        is_live = run.out().is_terminal and not self.as_json
        live = Live(console=run.out(), auto_refresh=False) if is_live else None
        with live or nullcontext():
            while True:
                await self.look()
                if live is not None:
                    live.update(self.build(datetime.now(UTC)), refresh=True)
                await asyncio.sleep(min(REDRAW_S, self.interval_s or REDRAW_S))

    async def look(self) -> None:
        """Run the guards that are due, and tell what changed."""
        now = time.monotonic()
        due = [choice for choice in self.choices if self._due_at.get(choice.name, 0.0) <= now]
        if not due:
            return
        for choice in due:
            self._due_at[choice.name] = now + (self.interval_s or choice.every_s)
        try:
            reports = await self.session.run(due)
            self._rows = await self.session.records.load_rows(self.choices)
        except DatabaseRefused:
            raise
        except HanSoloError as error:
            if not error.retryable:
                raise
            self._due_at.clear()
            self._tell_away(error.message)
        else:
            self._tell_away(None)
            for report in reports:
                self._tell(report)

    def build(self, now: datetime) -> RenderableType:
        """Build what stands on the terminal."""
        parts: list[RenderableType] = [guard_view.build_table(self._rows, now)]
        findings = list(guard_view.build_findings(self._rows, now))
        parts += [Text(), *findings] if findings else []
        if self._away is not None:
            parts.append(Text(visible(self._away), "yellow"))
        parts.append(Text("Nothing is repaired from here. Ctrl-C ends it.", "dim"))
        return Group(*parts)

    def _tell(self, report: GuardReport) -> None:
        """Tell a change, where there is no table."""
        state = (report.outcome, report.error, tuple((f.id, f.severity) for f in report.findings))
        if self._seen.get(report.guard) == state:
            return
        self._seen[report.guard] = state
        now = datetime.now(UTC)
        if self.as_json:
            print(json.dumps({"at": now.isoformat(), **of_report(report)}), flush=True)
        elif not run.out().is_terminal:
            show_lines(run.out(), guard_view.build_report(report, now))

    def _tell_away(self, why: str | None) -> None:
        if why != self._away and not run.out().is_terminal:
            say(run.err(), why or "It is back.", style="yellow" if why else "green")
        self._away = why
