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
from ..reconcile.spec import AgentSpec
from ..reconcile.switch.preflight import Wanted
from ..reconcile.switch.run import switch_model
from ..reconcile.switch.services import SwitchServices
from ..store.database import Database
from ..store.migrate import apply_migrations, check_schema
from ..turns.silence import find_cause
from .models import REHEARSAL_HANDLE


async def leave_rehearsal(connections: Connections, spec: AgentSpec) -> bool:
    """Switch the known agent to the spec's model if it runs the rehearsal model; say if it did.

    What the stand-in was given says nothing about a model, so nothing of it is carried over.

    Raises:
        PlanRefused: Letta does not offer the spec's model.
        SwitchFailed: it did not answer; the agent is as it was.
        HanSoloError: the database or Letta can not be used.
    """
    database = await Database.connect(
        connections.database_url,
        direct_url=connections.database_direct_url,
        pooler=connections.settings.database_pooler,
        pool_size=2,
    )
    gateway = LettaGateway.connect(connections.letta_url, connections.letta_password)
    try:
        agent_id = await _load_agent_id(database, connections, spec.name)
        if agent_id is None:
            return False
        agent = await gateway.fetch_agent(agent_id)
        if agent.llm_config.get("handle") != REHEARSAL_HANDLE:
            return False
        await apply_migrations(database)
        services = SwitchServices(gateway, database, spec, find_cause, Clock())
        await switch_model(services, agent_id, Wanted(spec.model.handle, carry=False))
        return True
    finally:
        await gateway.close()
        await database.close()


async def _load_agent_id(database: Database, connections: Connections, name: str) -> str | None:
    pending = await check_schema(database)
    if any(title.startswith("0001") for title in pending):
        return connections.settings.agent_id  # an empty database knows no agent yet
    known = await KnownAgent(database, name, Clock()).load_agent_id()
    return known or connections.settings.agent_id
