"""Guards of a test's own, with their findings in the real Postgres and no Letta behind them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from han_solo.daemon.report import GuardReport, Mode
from han_solo.daemon.runner import run_guards
from han_solo.declare import Finding, GuardMode, GuardSpec
from han_solo.errors import AlertFailed
from han_solo.findings.model import Alert
from han_solo.findings.service import Findings
from han_solo.findings.snapshots import Snapshots
from han_solo.guard_context import GuardServices
from han_solo.store.database import Database
from tests.integration.store_fixtures import StoppedClock, migrated

AGENT = "agent-1"
NAME = "ren"
START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def found(key: str = "it", **more: Any) -> Finding:
    fields: dict[str, Any] = {"summary": f"{key} is wrong.", "hint": "Mend it."}
    return Finding(key=key, **(fields | more))


class Pager:
    """Keeps what was told; ``is_broken`` makes it fail."""

    def __init__(self) -> None:
        self.sent: list[tuple[Alert, ...]] = []
        self.is_broken = False

    async def send(self, alerts: Sequence[Alert]) -> None:
        if self.is_broken:
            raise AlertFailed("The pager is broken.")
        self.sent.append(tuple(alerts))

    @property
    def keys(self) -> list[list[str]]:
        return [[alert.finding.key for alert in alerts] for alerts in self.sent]


@dataclass
class Desk:
    """One agent's findings, and guards that see what ``world`` holds."""

    db: Database
    clock: StoppedClock
    world: dict[str, list[Finding]] = field(default_factory=dict)
    repairs: list[str] = field(default_factory=list)
    pager: Pager = field(default_factory=Pager)

    @property
    def findings(self) -> Findings:
        return Findings(self.db, cast("Any", self.clock))

    def guard(self, name: str, check: Any = None, remedy: Any = None, **more: Any) -> GuardSpec:
        """Return a guard that finds what the world holds under its name, and mends all of it."""

        async def look(_context: Any) -> tuple[Finding, ...]:
            return tuple(self.world.get(name, ()))

        async def mend(_context: Any, _found: Any) -> str:
            self.repairs.append(name)
            self.world.pop(name, None)
            return "It was mended."

        mode: GuardMode = more.pop("mode", "repair")
        return GuardSpec(
            name=name,
            check=check or look,
            remedy=remedy or mend,
            every_s=60,
            incident="it",
            mode=mode,
            description="Finds it.",
            source="test.py:1",
            **more,
        )

    async def run(
        self,
        *guards: GuardSpec,
        epoch: int | None = None,
        modes: dict[str, Mode] | None = None,
        at_once: bool = False,
    ) -> tuple[GuardReport, ...]:
        services = GuardServices(
            reconcile=cast("Any", SimpleNamespace(spec=SimpleNamespace(name=NAME))),
            letta=cast("Any", None),
            blocks=cast("Any", None),
            turns=cast("Any", None),
            findings=self.findings,
            snapshots=Snapshots(self.db, cast("Any", self.clock)),
            clock=cast("Any", self.clock),
        )
        return await run_guards(
            services, AGENT, guards, epoch=epoch, modes=modes, alerts=self.pager, at_once=at_once
        )

    def wait(self, **time: float) -> None:
        self.clock.moment += timedelta(**time)

    async def lead(self, epoch: int) -> None:
        """Make that epoch the leader's."""
        async with self.db.transaction() as connection:
            await connection.execute(
                "INSERT INTO han_solo.leaders VALUES ($1, $2, 'test', now(), now())"
                " ON CONFLICT (agent_name) DO UPDATE SET epoch = excluded.epoch",
                NAME,
                epoch,
            )


@contextlib.asynccontextmanager
async def open_desk(database_url: str) -> AsyncIterator[Desk]:
    async with migrated(database_url) as db:
        yield Desk(db, StoppedClock(START))
