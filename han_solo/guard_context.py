"""What a guard may touch: a check looks, a remedy acts; bound to one agent and one run.

What a check asks for is read once a run and shared by all guards of that run, so a dozen guards
cost about as many requests as one sync. Nothing a check is given has a method that writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import NotFound
from .guard_reads import BlockReads, LettaReads

if TYPE_CHECKING:
    from .blocks.model import BlockState
    from .blocks.service import Blocks
    from .clock import Clock
    from .findings.service import Findings
    from .findings.snapshots import SnapshotReader, Snapshots
    from .letta.gateway import LettaGateway
    from .letta.views import AgentView
    from .memory.vector_health import VectorCare, VectorHealth
    from .reconcile.ensure import Outcome
    from .reconcile.model import Observed
    from .reconcile.plan import Plan, Step
    from .reconcile.services import ReconcileServices
    from .reconcile.spec import AgentSpec, ModelSpec
    from .runs.describe import JobState
    from .timers.model import TimersView
    from .transcripts.health import CaptureHealth
    from .turns.model import TurnRecord
    from .turns.service import Turns

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GuardServices:
    """What the guards of one agent work on. ``blocks`` writes as the caretaker."""

    reconcile: ReconcileServices
    letta: LettaGateway
    blocks: Blocks
    turns: Turns
    findings: Findings
    snapshots: Snapshots
    clock: Clock
    callback_tools: frozenset[str] = frozenset()
    """Names of the registry's tools that may message the agent."""
    load_jobs: Callable[[], Awaitable[tuple[JobState, ...]]] | None = None
    """How the declared jobs stand; None where there are none."""
    run_due: Callable[[str], Awaitable[str]] | None = None
    """Has a due job run, and says what came of it; None where nobody runs jobs."""
    load_timers: Callable[[], TimersView] | None = None
    """Reads the files of the timers that this user has; None where nobody looks."""
    vectors: VectorCare | None = None
    """Looks after what search by meaning goes by; None where nothing is searched."""
    load_capture: Callable[[], Awaitable[CaptureHealth | None]] | None = None
    """Looks whether transcripts come in; None where nobody looks."""


@dataclass(slots=True)
class Looks:
    """What was read in one run, each once."""

    _seen: dict[str, asyncio.Future[Any]] = field(default_factory=dict)

    async def once(self, what: str, read: Callable[[], Awaitable[T]]) -> T:
        if what not in self._seen:
            self._seen[what] = asyncio.ensure_future(read())
        # Shielded: a check that runs into its deadline must not cancel what others wait for too.
        result: T = await asyncio.shield(self._seen[what])
        return result


class CheckContext:
    """What a check may look at.

    ``now`` is the time of the run.
    """

    def __init__(
        self,
        services: GuardServices,
        agent_id: str,
        *,
        now: datetime,
        looks: Looks | None = None,
    ) -> None:
        self._services = services
        self._looks = looks or Looks()
        self.agent_id = agent_id
        self.now = now

    @property
    def agent_name(self) -> str:
        """Return the name of the spec."""
        return self.spec.name

    @property
    def spec(self) -> AgentSpec:
        return self._services.reconcile.spec

    @property
    def bridge_name(self) -> str:
        """Return the name under which our bridge is an MCP server in Letta."""
        return self._services.reconcile.bridge_name

    @property
    def declared_tools(self) -> frozenset[str]:
        """Return the names of the agent's set in the registry."""
        return frozenset(tool.name for tool in self._services.reconcile.declared)

    @property
    def callback_tools(self) -> frozenset[str]:
        """Return the names of our tools that may message the agent."""
        return self._services.callback_tools

    @property
    def stored_ids(self) -> StoredIds:
        """Return where copies of the agent's id are kept."""
        return StoredIds(self._services.reconcile)

    @property
    def letta(self) -> LettaReads:
        return self._services.letta

    @property
    def block_history(self) -> BlockReads:
        return self._services.blocks

    @property
    def snapshots(self) -> SnapshotReader:
        return self._services.snapshots

    async def agent(self) -> AgentView:
        """Return the agent, whole.

        Raises:
            AgentGone: a confirmed 404.
            LettaError: Letta did not say.
        """
        return await self._looks.once(
            "agent", lambda: self._services.letta.fetch_agent(self.agent_id)
        )

    async def model(self) -> ModelSpec:
        """Return what is declared of the model: the spec's, or the one switched to since."""
        from .reconcile.pinned import pin_model  # noqa: PLC0415 - as in ``plan``

        known = self._services.reconcile.known
        switched = await self._looks.once("switched", lambda: known.load_switched(self.agent_id))
        return pin_model(self.spec.model, switched, (await self.agent()).llm_config.get("handle"))

    async def observed(self) -> Observed:
        """Return what a sync compares."""
        services = self._services.reconcile
        return await self._looks.once(
            "observed",
            lambda: services.observe(self.agent_id, services.build_desired().server.token),
        )

    async def plan(self) -> Plan:
        """Return what a sync would do now; nothing is done."""
        from .reconcile.diff import diff  # noqa: PLC0415 - a guard's import of the front stays light

        return diff(self._services.reconcile.build_desired(), await self.observed())

    async def blocks(self) -> tuple[BlockState, ...]:
        """Return the blocks as they are in Letta, each with the version that it holds."""
        return await self._looks.once("blocks", self._services.blocks.list)

    async def jobs(self) -> tuple[JobState, ...]:
        """Return how the declared jobs stand; none while all are paused."""
        load = self._services.load_jobs
        return () if load is None else await self._looks.once("jobs", load)

    async def timers(self) -> TimersView | None:
        """Return the timers that are installed for jobs, as their files say; None: not looked."""
        load = self._services.load_timers
        if load is None:
            return None
        return await self._looks.once("timers", lambda: asyncio.to_thread(load))

    async def vectors(self) -> VectorHealth | None:
        """Return how what search goes by is; None where nothing is remembered yet."""
        care = self._services.vectors
        return None if care is None else await self._looks.once("vectors", care.look)

    async def capture(self) -> CaptureHealth | None:
        """Return how the reading of transcripts goes; None while jobs are paused."""
        load = self._services.load_capture
        return None if load is None else await self._looks.once("capture", load)

    async def turns(self, limit_rows: int = 20) -> Sequence[TurnRecord]:
        """Return the last turns that were sent through us, the newest first."""
        return await self._looks.once(
            f"turns {limit_rows}", lambda: self._services.turns.list(limit_rows=limit_rows)
        )


@dataclass(frozen=True, slots=True)
class StoredIds:
    """The copies of the agent's id that are not Letta's."""

    _reconcile: ReconcileServices = field(repr=False)

    @property
    def from_settings(self) -> str | None:
        return self._reconcile.agent_id

    async def from_database(self) -> str | None:
        return await self._reconcile.known.load_agent_id()


class RemedyContext(CheckContext):
    """What a remedy may do beside looking. ``epoch`` is the leader's, under which it runs."""

    def __init__(
        self,
        services: GuardServices,
        agent_id: str,
        *,
        now: datetime,
        epoch: int,
    ) -> None:
        super().__init__(services, agent_id, now=now)
        self.epoch = epoch

    @property
    def letta_writes(self) -> LettaGateway:
        return self._services.letta

    @property
    def reconcile(self) -> ReconcileServices:
        return self._services.reconcile

    @property
    def blocks_writer(self) -> Blocks:
        """Return the blocks, written as the caretaker."""
        return self._services.blocks

    @property
    def snapshots_writer(self) -> Snapshots:
        return self._services.snapshots

    @property
    def vector_care(self) -> VectorCare:
        """Return what makes vectors.

        Raises:
            NotFound: nobody makes any here.
        """
        if self._services.vectors is None:
            raise NotFound("Nothing is embedded here.", hint="han-solo embed fill")
        return self._services.vectors

    async def apply(self, only: Callable[[Step], bool] | None = None) -> Outcome:
        """Take the steps of the plan for what is there now; see ``ensure_ren_tools``."""
        from .reconcile.ensure import ensure_ren_tools  # noqa: PLC0415 - as above

        return await ensure_ren_tools(self._services.reconcile, only=only)

    async def run_due(self, job: str) -> str:
        """Have a due job run, and return in a sentence what came of it.

        Raises:
            NotFound: nobody runs jobs here.
        """
        if self._services.run_due is None:
            raise NotFound(
                f"The job {job} is not run from here.", hint=f"Run it: han-solo jobs run {job}"
            )
        return await self._services.run_due(job)
