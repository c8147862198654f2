"""The managed agent as jobs get it: blocks under the job's name, turns, Letta."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from ..blocks.model import Author, Rights
from ..blocks.service import Blocks
from ..blocks.versions import BlockVersions
from ..bridge.conversation import build_turns
from ..clock import Clock
from ..connections import Connections
from ..errors import NotFound
from ..job_context import AgentParts, OpenAgent
from ..letta.gateway import LettaGateway
from ..reconcile.known import KnownAgent
from ..reconcile.spec import load_spec
from ..settings import Settings
from ..store.database import Database


def build_open_agent(settings: Settings, db: Database, clock: Clock) -> OpenAgent:
    """Return what opens the agent for a job of a name."""

    def open_agent(
        job: str, *, message_timeout_s: float | None = None
    ) -> AbstractAsyncContextManager[AgentParts]:
        return _open(settings, db, clock, Author("job", job), message_timeout_s)

    return open_agent


@asynccontextmanager
async def _open(
    settings: Settings,
    db: Database,
    clock: Clock,
    author: Author,
    message_timeout_s: float | None,
) -> AsyncIterator[AgentParts]:
    """Open the agent's parts.

    Raises:
        NotFound: there is no agent yet.
        HanSoloError: the spec or an address can not be used.
    """
    where = Connections(settings)
    spec = load_spec(settings.agent_spec, person=settings.person, model=where.model)
    agent_id = settings.agent_id or await KnownAgent(db, spec.name, clock).load_agent_id()
    if agent_id is None:
        raise NotFound(
            f"There is no agent {spec.name!r} yet, so {author.name} has nobody to work for.",
            hint="Run `han-solo up` (scripts/up), which makes it from its spec.",
        )
    async with LettaGateway.connect(
        where.letta_url,
        where.letta_password,
        timeout_s=settings.letta_timeout_s,
        message_timeout_s=message_timeout_s or settings.letta_message_timeout_s,
    ) as letta:
        blocks = Blocks(
            letta,
            BlockVersions(db, clock),
            agent_id,
            author,
            rights=Rights.of(spec.blocks),
            timeout_s=settings.letta_timeout_s,
            clock=clock,
        )
        turns = build_turns(
            settings, db=db, gateway=letta, agent_id=agent_id, blocks=blocks, clock=clock
        )
        yield AgentParts(agent_id, spec, letta, blocks, turns)
