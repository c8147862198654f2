"""Something that is away: told once when it goes, and once when it is back, with since when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from .. import logs

_log = logs.get("daemon")


class Outage:
    """One that may happen again and again: of the database, or of what guards look at."""

    def __init__(self, what: Literal["database", "guards"]) -> None:
        self._what = what
        self._since: datetime | None = None

    def began(self, now: datetime, reason: str, *, guards: Sequence[str] = ()) -> None:
        """Tell that it is away, unless that is known."""
        if self._since is not None:
            return
        self._since = now
        if self._what == "database":
            _log.warning("daemon.database_away", reason=reason)
        else:
            _log.warning("daemon.guards_blind", reason=reason, guards=list(guards))

    def ended(self) -> None:
        """Tell that it is back, if it was away."""
        if self._since is None:
            return
        event = "daemon.database_back" if self._what == "database" else "daemon.guards_see_again"
        _log.info(event, away_since=self._since.isoformat())
        self._since = None
