"""What lies behind the bridge in Postgres: opened as a whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from ..blocks.versions import BlockVersions
from ..clock import Clock
from ..connections import Connections
from ..memory.notecards import Notecards
from ..memory.opening import open_passages
from ..memory.passages import Passages
from ..reconcile.known import KnownAgent
from ..store.database import Database
from ..store.migrate import apply_migrations
from ..tokens.service import Tokens
from ..transcripts.service import Transcripts
from .own_tokens import ensure_agent_token


@dataclass(frozen=True, slots=True)
class Data:
    """The database and what works on it. ``agent_token`` is what Letta is given."""

    database: Database
    tokens: Tokens
    notecards: Notecards
    passages: Passages
    transcripts: Transcripts
    block_versions: BlockVersions
    known: KnownAgent
    agent_token: str

    async def close(self) -> None:
        await self.passages.vectors.close()
        await self.database.close()


async def open_data(connections: Connections, agent_name: str, clock: Clock) -> Data:
    """Connect, migrate, and make the tokens that are missing.

    Raises:
        DatabaseUnavailable: it does not answer; try again.
        HanSoloError: it can not be used as it is: refused, newer than this release, and the like.
    """
    settings = connections.settings
    database = await Database.connect(
        connections.database_url,
        direct_url=connections.database_direct_url,
        pooler=settings.database_pooler,
        pool_size=settings.database_pool_size,
        timeout_s=settings.database_timeout_s,
    )
    try:
        await apply_migrations(database, clock=clock)
        tokens = Tokens(database, clock)
        return Data(
            database=database,
            tokens=tokens,
            notecards=Notecards(database, clock),
            passages=open_passages(settings, database, clock),
            transcripts=Transcripts(database, clock),
            block_versions=BlockVersions(database, clock),
            known=KnownAgent(database, agent_name, clock),
            agent_token=await ensure_agent_token(tokens, connections.home),
        )
    except BaseException:
        await database.close()
        raise
