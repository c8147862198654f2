"""The running bridge behind its app: what is connected, what is away, and how it heals.

The database and Letta may be away when the bridge starts, and may come and go while it runs. It
serves all the same, says what is away, and ``heal`` brings it to a state in which the agent's tools
are in sync: it opens the database, then runs ``ensure_ren_tools``, and tries again until it worked.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from .. import logs
from ..blocks.model import CARETAKER, Author, Rights
from ..blocks.service import Blocks
from ..clock import Clock
from ..connections import Connections
from ..context import BlockContext, MemoryContext, OperatorContext
from ..declare import ToolSpec
from ..errors import AgentGone, DatabaseUnavailable, Forbidden, HanSoloError, NotFound
from ..principals import Principal
from ..reconcile.switch.journal import is_canary
from ..registry import Registry
from ..runs.describe import describe_jobs
from ..runs.service import JobRuns
from .conversation import build_turns
from .data import Data, open_data
from .faults import log_fault
from .health import Health, Sync
from .letta import Letta
from .projection import list_tools
from .sync import SyncReport, ToolSync

_log = logs.get("bridge")

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
"""Between tries: soon at first, since Letta takes half a minute to start; then rarely."""

PING_TIMEOUT_S: Final = 2.0
"""A probe waits no longer; a database that takes longer to say 1 is away as far as it matters."""


class BridgeBackend:
    """What the app calls; see ``app.Backend``."""

    def __init__(
        self,
        connections: Connections,
        agent_name: str,
        registry: Registry,
        letta: Letta,
        clock: Clock | None = None,
        *,
        rights: Rights | None = None,
    ) -> None:
        self.connections = connections
        self._rights = rights
        self._agent_name = agent_name
        self._letta = letta
        self._tool_sync = ToolSync(
            connections.settings, letta.gateway, list_tools(registry, "agent")
        )
        self._jobs = registry.jobs
        self._clock = clock or Clock()
        self._data: Data | None = None
        self._data_error = "Postgres was not reached yet."
        self._agent_id: str | None = None  # a setting alone is no proof of whose blocks these are
        self._agent_error = "The agent was not looked for yet."
        self._sync = Sync()
        self._syncing = asyncio.Lock()
        self._looking: asyncio.Task[Health] | None = None

    # Coming up, healing, ending

    async def open(self) -> None:
        """Open the database and look up the agent; does nothing when that was done.

        Raises:
            DatabaseUnavailable: try again.
            HanSoloError: the database can not be used as it is.
        """
        if self._data is not None:
            return
        try:
            data = await open_data(self.connections, self._agent_name, self._clock)
            self._agent_id = self._confirm(await data.known.load_agent_id())
        except HanSoloError as error:
            self._data_error = str(error)
            raise
        self._data = data
        _log.info("bridge.database_opened", where=data.database.where)

    async def heal(self) -> None:
        """Try until the agent's tools are in sync; what stands in the way is seen in the health."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                await self.open()
                report = await self._run_sync()
            except HanSoloError as error:
                self._note(in_sync=False, reason=str(error))
                _log.warning("bridge.sync_failed", reason=str(error), pause_s=pause_s)
            except Exception as error:  # noqa: BLE001 - a loop's edge: logged, and it goes on
                fault = log_fault(error, where="sync")
                reason = f"A fault in han-solo itself (fault {fault} in the bridge's log)."
                self._note(in_sync=False, reason=reason)
            else:
                await self._settle_blocks(report.agent_id)
                if report.in_sync:
                    return
                _log.warning("bridge.out_of_sync", reason=report.reason, pause_s=pause_s)
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def close(self) -> None:
        await self._letta.close()
        if self._data is not None:
            await self._data.close()

    # What the app asks

    async def verify(self, token: str) -> Principal:
        return await self._require_data().tokens.verify(token)

    async def bind(self, spec: ToolSpec, principal: Principal) -> MemoryContext:
        """Make the tool's context for this caller.

        A caller that is no agent works on the managed agent. An agent that is not the managed one
        has the memory (which all agents share, each row under its own id) and no blocks.
        """
        data = self._require_data()
        caller = principal
        await self._keep_canary_from_writing(spec, principal, data)
        if principal.agent_id is None:
            caller = replace(principal, agent_id=self._agent_id)
        if spec.context == "memory":
            return MemoryContext(
                principal=caller,
                notecards=data.notecards,
                passages=data.passages,
                transcripts=data.transcripts,
            )
        agent_id = self._require_agent(caller)
        blocks = self._blocks(data, agent_id, Author.of(caller))
        if spec.context == "block":
            return BlockContext(
                principal=caller,
                notecards=data.notecards,
                passages=data.passages,
                transcripts=data.transcripts,
                blocks=blocks,
            )
        return OperatorContext(
            principal=caller,
            notecards=data.notecards,
            passages=data.passages,
            transcripts=data.transcripts,
            blocks=blocks,
            letta=self._letta.gateway,
            turns=build_turns(
                self.connections.settings,
                db=data.database,
                gateway=self._letta.gateway,
                agent_id=agent_id,
                blocks=blocks,
                clock=self._clock,
            ),
        )

    async def fetch_health(self) -> Health:
        """Look at the parts; callers that ask at once share one look, and so one connection."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(self._looking)

    async def _look(self) -> Health:
        failed: dict[str, str] = {}
        try:
            async with asyncio.timeout(PING_TIMEOUT_S):
                await self._require_data().database.ping()
        except HanSoloError as error:
            failed["memory_db"] = str(error)
        except TimeoutError:
            failed["memory_db"] = f"Postgres did not answer within {PING_TIMEOUT_S:g} s."
        if self._agent_id is None:
            failed["agent"] = self._agent_error
        return Health(
            memory_db_connected="memory_db" not in failed,
            agent_resolved=self._agent_id is not None,
            failed=failed,
            sync=self._sync,
        )

    async def sync_tools(self) -> Mapping[str, object]:
        return (await self._run_sync()).body

    async def fetch_jobs_status(self) -> Mapping[str, object]:
        return await describe_jobs(
            JobRuns(self._require_data().database, self._clock),
            self._jobs,
            self._clock.now(),
            self.connections.settings.zone,
        )

    async def fetch_agent_info(self) -> Mapping[str, object]:
        if self._agent_id is None:
            raise NotFound(self._agent_error, hint="Run `han-solo sync-tools`.")
        return await self._tool_sync.describe(self._require_data().database, self._agent_id)

    # Within

    async def _keep_canary_from_writing(
        self, spec: ToolSpec, principal: Principal, data: Data
    ) -> None:
        """Refuse the writes of an agent that only tries a model, for ever: a call may come late."""
        caller = principal.agent_id
        if spec.effect == "read" or caller in {None, self._agent_id}:
            return
        if await is_canary(data.database, str(caller)):
            raise Forbidden(
                f"The agent {caller} only tries a model for a switch, and writes nothing.",
                hint="Answer the user instead.",
            )

    def _blocks(self, data: Data, agent_id: str, author: Author) -> Blocks:
        return Blocks(
            self._letta.blocks,
            data.block_versions,
            agent_id,
            author,
            rights=self._rights,
            timeout_s=self.connections.settings.letta_block_timeout_s,
            clock=self._clock,
        )

    async def _settle_blocks(self, agent_id: str) -> None:
        """Settle the block writes that an earlier process left open, and keep what is there."""
        try:
            await self._blocks(self._require_data(), agent_id, CARETAKER).inspect()
        except HanSoloError as error:  # the next access of each block settles it all the same
            _log.warning("bridge.blocks_not_inspected", reason=str(error))

    def _require_data(self) -> Data:
        if self._data is None:
            raise DatabaseUnavailable(self._data_error, hint="Nothing was done; try again soon.")
        return self._data

    def _require_agent(self, caller: Principal) -> str:
        if self._agent_id is None:
            raise NotFound(self._agent_error, hint="Run `han-solo sync-tools`.")
        if caller.agent_id != self._agent_id:
            raise Forbidden(
                f"The agent {caller.agent_id} is not the one whose core blocks are kept here.",
                hint="Its memory tools work; core blocks are written for the managed agent only.",
            )
        return self._agent_id

    async def _run_sync(self) -> SyncReport:
        """Run ``ensure_ren_tools``, one at a time, and keep what came of it."""
        data = self._require_data()
        async with self._syncing:
            try:
                report = await self._tool_sync.run(data.database)
            except AgentGone as error:  # until an agent is there again, nothing writes its blocks
                self._agent_id, self._agent_error = None, str(error)
                self._note(in_sync=False, reason=str(error))
                raise
            except HanSoloError as error:
                self._agent_error = str(error)
                self._note(in_sync=False, reason=str(error))
                with contextlib.suppress(HanSoloError):  # made or found before the sync failed
                    self._agent_id = self._confirm(await data.known.load_agent_id())
                raise
            self._agent_id = report.agent_id
            self._note(in_sync=report.in_sync, reason=report.reason, is_final=True)
            return report

    def _confirm(self, stored: str | None) -> str | None:
        """Return the stored id unless the setting names another; a sync decides between the two."""
        wanted = self.connections.settings.agent_id
        return stored if wanted in {None, stored} else None

    def _note(self, *, in_sync: bool, reason: str | None, is_final: bool = False) -> None:
        self._sync = Sync(in_sync, self._clock.now(), reason, is_final)
