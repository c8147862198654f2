"""When a model key was set since the last start: take the agent off the rehearsal model.

Only that way round. An agent that had a real model and whose key is missing at this start is not
given the stand-in, whose answers would become its memories; it keeps its model and can not answer
until the key is back, and ``status`` says so.
"""

from __future__ import annotations

from ..clock import Clock
from ..connections import Connections
from ..letta.gateway import LettaGateway
from ..reconcile.known import KnownAgent
from ..reconcile.model_switch import switch_model
from ..reconcile.spec import AgentSpec
from ..store.database import Database
from ..store.migrate import check_schema
from .models import REHEARSAL_HANDLE


async def leave_rehearsal(connections: Connections, spec: AgentSpec) -> bool:
    """Switch the known agent to the spec's model if it runs the rehearsal model; say if it did.

    Raises:
        UsageError: Letta does not offer the spec's model.
        HanSoloError: the database or Letta can not be used.
    """
    agent_id = await _load_agent_id(connections, spec.name)
    if agent_id is None:
        return False
    gateway = LettaGateway.connect(connections.letta_url, connections.letta_password)
    async with gateway:
        agent = await gateway.fetch_agent(agent_id)
        if agent.llm_config.get("handle") != REHEARSAL_HANDLE:
            return False
        await switch_model(gateway, agent_id, spec.model)
    return True


async def _load_agent_id(connections: Connections, name: str) -> str | None:
    database = await Database.connect(
        connections.database_url,
        direct_url=connections.database_direct_url,
        pooler=connections.settings.database_pooler,
        pool_size=1,
    )
    try:
        if await check_schema(database):
            return connections.settings.agent_id  # an empty database knows no agent yet
        known = await KnownAgent(database, name, Clock()).load_agent_id()
        return known or connections.settings.agent_id
    finally:
        await database.close()
