"""What the guard commands work on: the guards as they are to run, the agent, what was recorded."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ..bridge.lister import list_live_tools
from ..bridge.projection import list_tools
from ..clock import Clock
from ..connections import Connections
from ..daemon.alerts import AlertSender
from ..daemon.choice import Choice, choose, find_similar
from ..daemon.leadership import Leadership
from ..daemon.lease import Lead
from ..daemon.report import GuardReport, Mode
from ..daemon.requests import Requests
from ..daemon.runner import run_guards
from ..daemon.services import build_guard_services
from ..errors import DatabaseUnavailable, NotFound, UsageError
from ..findings.model import FindingRow, GuardRun
from ..findings.service import Findings
from ..guard_context import GuardServices
from ..letta.fence import writes_only_while
from ..letta.gateway import LettaGateway
from ..loader import load_registry
from ..reconcile.identity import find_agent_id
from ..reconcile.known import KnownAgent
from ..reconcile.services import build_services
from ..reconcile.spec import load_spec
from ..registry import Registry
from ..settings import Settings
from .block_session import user_name
from .services import open_database

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """A guard, its last run and what it has open; nothing while it is off.

    ``run`` is None when it never ran.
    """

    choice: Choice
    run: GuardRun | None = None
    open: tuple[FindingRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Records:
    """What was recorded of an agent's guards."""

    findings: Findings
    agent_id: str

    async def load_rows(self, choices: Sequence[Choice]) -> tuple[Row, ...]:
        """Return what is known of each guard."""
        runs = {run.guard: run for run in await self.findings.list_runs(self.agent_id)}
        found: dict[str, list[FindingRow]] = {}
        for row in await self.findings.list_open(self.agent_id):
            found.setdefault(row.guard, []).append(row)
        return tuple(
            Row(
                choice,
                runs.get(choice.name),
                tuple(found.get(choice.name, ())) if choice.runs else (),
            )
            for choice in choices
        )


@dataclass(frozen=True, slots=True)
class GuardSession:
    """One agent and its guards."""

    services: GuardServices
    agent_id: str
    choices: tuple[Choice, ...]

    @property
    def records(self) -> Records:
        return Records(self.services.findings, self.agent_id)

    @property
    def agent_name(self) -> str:
        return self.services.reconcile.spec.name

    async def run(
        self,
        choices: Sequence[Choice],
        *,
        lead: Lead | None = None,
        is_named: bool = False,
        alerts: AlertSender | None = None,
    ) -> tuple[GuardReport, ...]:
        """Run these guards once.

        Args:
            choices: the guards.
            lead: the lead, to repair too.
            is_named: they were asked for by name, so their modes do not matter.
            alerts: tells of what is found.

        Raises:
            DatabaseUnavailable: Postgres is away, or the lead was lost with its connection.
        """
        work = run_guards(
            self.services,
            self.agent_id,
            [choice.spec for choice in choices],
            epoch=lead.epoch if lead else None,
            modes={choice.name: _mode_of(choice, is_named=is_named) for choice in choices},
            alerts=alerts,
            at_once=True,
        )
        return await (work if lead is None else _run_while_leading(lead, work))

    async def ask_leader(self, guards: Sequence[str]) -> bool:
        """Have the process that leads repair what these guards find; False if it did not answer."""
        if not guards:
            return True
        requests = Requests(self.services.reconcile.db, self.agent_id)
        return await requests.ask(guards, by=user_name())

    @property
    def leadership(self) -> Leadership:
        """Return the lead of this agent, taken in the name of whoever sits here."""
        where = f"{user_name()} at a terminal of {socket.gethostname()}"
        return Leadership(self.services.reconcile.db, self.agent_name, holder=where)


async def _run_while_leading(lead: Lead, work: Coroutine[Any, Any, T]) -> T:
    """Cut the work off when the lead is lost: whoever has it now may begin the same."""
    with writes_only_while(lead.require):  # also after Ctrl-Z, and `fg` an hour later
        working = asyncio.ensure_future(work)
    losing = asyncio.ensure_future(lead.lost.wait())
    try:
        await asyncio.wait({working, losing}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise DatabaseUnavailable(
                "The lead was lost with its connection to Postgres.",
                hint="What was under way is finished by whoever leads now; see `han-solo guards "
                "history`.",
            )
        return working.result()
    finally:
        losing.cancel()
        working.cancel()
        await asyncio.gather(working, losing, return_exceptions=True)


def _mode_of(choice: Choice, *, is_named: bool) -> Mode:
    if not is_named:
        return choice.mode
    return "observe" if choice.spec.remedy is None else "repair"


def load_choices(settings: Settings) -> tuple[Choice, ...]:
    """Load the guards, the operator's own too, as they are to run."""
    return choose(load_registry(settings.extensions).guards, settings)


def pick(choices: Sequence[Choice], names: Sequence[str]) -> tuple[Choice, ...]:
    """Return the guards of these names; without any, those that are not off.

    Raises:
        UsageError: there is no guard of a name.
    """
    if not names:
        return tuple(choice for choice in choices if choice.runs)
    by_name = {choice.name: choice for choice in choices}
    for name in names:
        if name not in by_name:
            raise UsageError(f"There is no guard {name!r}.", hint=find_similar(name, list(by_name)))
    return tuple(by_name[name] for name in sorted(set(names)))


@asynccontextmanager
async def open_records(settings: Settings) -> AsyncIterator[Records]:
    """Connect to Postgres; Letta is not asked.

    Raises:
        NotFound: there is no agent yet.
    """
    where = Connections(settings)
    spec = load_spec(settings.agent_spec, person=settings.person, model=where.model)
    async with open_database(settings) as db:
        agent_id = settings.agent_id or await KnownAgent(db, spec.name, Clock()).load_agent_id()
        yield Records(Findings(db), _require(agent_id, spec.name))


@asynccontextmanager
async def open_guards(settings: Settings) -> AsyncIterator[GuardSession]:
    """Load the guards and connect to Postgres and Letta.

    Raises:
        NotFound: there is no agent yet.
        HanSoloError: Postgres is away, or something can not be used as it is set.
    """
    registry: Registry = load_registry(settings.extensions)
    choices = choose(registry.guards, settings)
    where = Connections(settings)
    async with (
        open_database(settings) as db,
        LettaGateway.connect(
            where.letta_url,
            where.letta_password,
            timeout_s=settings.letta_timeout_s,
            message_timeout_s=settings.letta_message_timeout_s,
        ) as gateway,
    ):
        reconcile = build_services(
            settings,
            gateway=gateway,
            db=db,
            declared=list_tools(registry, "agent"),
            list_live=list_live_tools,
        )
        agent_id = _require(await find_agent_id(reconcile), reconcile.spec.name)
        services = build_guard_services(
            settings,
            reconcile,
            gateway,
            agent_id,
            callback_tools=registry.callback_tools,
            jobs=registry.jobs,
        )
        yield GuardSession(services, agent_id, choices)


def _require(agent_id: str | None, name: str) -> str:
    if agent_id is None:
        raise NotFound(
            f"There is no agent {name!r} yet, so there is nothing to guard.",
            hint="Run `han-solo up` (scripts/up), which makes it from its spec.",
        )
    return agent_id
