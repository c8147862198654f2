"""Look at every part of an installation and say how it is; ``status`` and ``doctor`` show it.

Each part is looked at by itself, so that one that is away hides nothing of the others. Nothing is
changed, not even the schema.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx

from ..bridge.lister import list_live_tools
from ..bridge.projection import list_tools
from ..connections import Connections, without_password
from ..errors import AgentGone, HanSoloError
from ..letta.gateway import LettaGateway
from ..loader import load_registry
from ..reconcile.ensure import make_plan
from ..reconcile.identity import find_agent_id
from ..reconcile.plan import Plan, kind_of, target_of
from ..reconcile.services import ReconcileServices, build_services
from ..reconcile.spec import load_spec
from ..store.database import Database
from ..store.migrate import check_schema
from .survey_memory import look_at_memory
from .survey_model import Survey
from .survey_watch import look_at_watch

TESTED_LETTA: Final = "0.16.8"
_TIMEOUT_S: Final = 10.0


async def survey(connections: Connections) -> Survey:
    """Look at everything; never raises for what it finds."""
    found = Survey()
    _look_at_declarations(connections, found)
    _look_at_supervisor(connections, found)
    async with _database(connections, found) as database, _letta(connections, found) as gateway:
        services = _services(connections, found, database, gateway)
        agent_id = await _find_agent_id(connections, found, services)
        await _look_at_agent(found, gateway, services, agent_id)
        bridge_is_up = await _look_at_bridge(connections, found)
        await _look_at_tools(found, services, bridge_is_up=bridge_is_up)
        await look_at_memory(connections, found, database)
        await look_at_watch(connections, found, database, agent_id)
    return found


def _look_at_declarations(connections: Connections, found: Survey) -> None:
    settings = connections.settings
    address = str(settings.agent_spec or "the shipped one")
    try:
        found.spec = load_spec(settings.agent_spec, person=settings.person, model=connections.model)
        found.registry = load_registry(settings.extensions)
    except HanSoloError as error:
        found.add_fault("declarations", address, error)
        return
    own = (
        f", with {len(settings.extensions)} of your own directories" if settings.extensions else ""
    )
    detail = f"agent {found.spec.name!r} of {found.spec.person}, {len(found.registry)} tools{own}"
    found.add("declarations", "ok", address, detail)


def _look_at_supervisor(connections: Connections, found: Survey) -> None:
    """Say whether somebody watches the embedded parts; silent where ``up`` is not in use."""
    from ..embedded.stack import find_running, was_killed

    if running := find_running(connections.home):
        found.add("supervisor", "ok", f"process {running}", "han-solo up watches its parts")
    elif was_killed(connections.home):
        found.add(
            "supervisor", "warning", "",
            "han-solo up was killed: nobody watches its parts, and one that dies stays down",
            "Run `han-solo up` (scripts/up) again: it stops what is left and starts it anew.",
        )  # fmt: skip


@asynccontextmanager
async def _database(connections: Connections, found: Survey) -> AsyncIterator[Database | None]:
    address = "none"
    database: Database | None = None
    pending: tuple[str, ...] = ()
    try:
        address = without_password(connections.database_url)
        database = await Database.connect(
            connections.database_url,
            direct_url=connections.database_direct_url,
            pooler=connections.settings.database_pooler,
            pool_size=2,
            timeout_s=_TIMEOUT_S,
        )
        pending = await check_schema(database)
    except HanSoloError as error:
        found.add_fault("database", address, error)
        if database is not None:
            await database.close()
            database = None
    else:
        kind = "embedded" if connections.database_is_embedded else "your own"
        if pending:
            found.add(
                "database", "warning", address, f"{kind}; migrations to come: {', '.join(pending)}",
                "They are applied when the bridge starts.",
            )  # fmt: skip
        else:
            found.add("database", "ok", address, f"{kind}, at the schema of this release")
    try:
        # Where tables are still to come nothing below can be read.
        yield None if pending else database
    finally:
        if database is not None:
            await database.close()


@asynccontextmanager
async def _letta(connections: Connections, found: Survey) -> AsyncIterator[LettaGateway | None]:
    try:
        address = connections.letta_url
        gateway = LettaGateway.connect(address, connections.letta_password, timeout_s=_TIMEOUT_S)
    except HanSoloError as error:
        found.add_fault("letta", "none", error)
        yield None
        return
    async with gateway:
        try:
            health = await gateway.health()
            await gateway.fetch_models()  # the health asks for no password; this does
        except HanSoloError as error:
            found.add_fault("letta", address, error)
            yield None
            return
        kind = "embedded" if connections.letta_is_embedded else "your own"
        if health.version == TESTED_LETTA:
            found.add("letta", "ok", address, f"{kind}, version {health.version}")
        else:
            found.add(
                "letta", "warning", address,
                f"{kind}, version {health.version}; han-solo is tested with {TESTED_LETTA}",
                f"Run the version that is tested: pip install 'letta[server]=={TESTED_LETTA}'",
            )  # fmt: skip
        yield gateway


def _services(
    connections: Connections,
    found: Survey,
    database: Database | None,
    gateway: LettaGateway | None,
) -> ReconcileServices | None:
    if database is None or gateway is None or found.registry is None:
        return None
    try:
        return build_services(
            connections.settings,
            gateway=gateway,
            db=database,
            declared=list_tools(found.registry, "agent"),
            list_live=list_live_tools,
        )
    except HanSoloError:
        return None  # the bridge never ran here, which its own line says


async def _find_agent_id(
    connections: Connections, found: Survey, services: ReconcileServices | None
) -> str | None:
    """Return the agent's id as a sync would take it; what is wrong with it is the agent's line."""
    if services is None:
        return connections.settings.agent_id
    try:
        return await find_agent_id(services)
    except HanSoloError as error:
        found.add_fault("agent", connections.settings.agent_id or "", error)
        return None


async def _look_at_agent(
    found: Survey,
    gateway: LettaGateway | None,
    services: ReconcileServices | None,
    agent_id: str | None,
) -> None:
    if any(part.name == "agent" for part in found.parts):
        return
    if gateway is None or (services is None and agent_id is None):
        found.add("agent", "unknown", agent_id or "", "needs the database, Letta and the bridge")
        return
    if agent_id is None:
        found.add(
            "agent", "failed", "", "there is none yet",
            "Run `han-solo up` (scripts/up), which makes it from its spec.",
        )  # fmt: skip
        return
    try:
        agent = found.agent = await gateway.fetch_agent(agent_id)
    except AgentGone as error:
        found.add_fault("agent", agent_id, error)
        return
    except HanSoloError as error:
        found.add("agent", "unknown", agent_id, error.message, error.hint)
        return
    config = agent.llm_config
    window = config.get("context_window")
    size = f"{window:,} tokens of context" if isinstance(window, int) else "no context window"
    found.add(
        "agent", "ok", agent.id,
        f"{agent.name} on {config.get('handle') or config.get('model')}, {size}, "
        f"{len(agent.tools)} tools, {len(agent.blocks)} blocks",
    )  # fmt: skip


async def _look_at_bridge(connections: Connections, found: Survey) -> bool:
    try:
        url = connections.bridge_local_url
    except HanSoloError as error:
        found.add_fault("bridge", "none", error)
        return False
    shown = connections.bridge_mcp_url
    try:
        async with httpx.AsyncClient(timeout=_TIMEOUT_S) as client:
            health = (await client.get(f"{url}/health")).json()
        status, failed = str(health["status"]), dict(health["failed"])
        tools = int(health["tools"])
        sync = dict(health["sync"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        found.add(
            "bridge", "failed", shown, "it does not answer",
            "Run `han-solo up` (scripts/up) or `han-solo bridge`.",
        )  # fmt: skip
        return False
    if status != "ok":
        why = " ".join(map(str, failed.values()))
        found.add("bridge", "failed", shown, f"degraded: {why}", "See `han-solo doctor`.")
        return False
    if sync.get("tools_in_sync") is False and not sync.get("is_final"):
        detail = f"serves {tools} tools, and can not bring the agent in sync: {sync.get('reason')}"
        found.add("bridge", "failed", shown, detail)
    else:
        found.add("bridge", "ok", shown, f"serves {tools} tools")
    return True


async def _look_at_tools(
    found: Survey, services: ReconcileServices | None, *, bridge_is_up: bool
) -> None:
    if services is None or found.agent is None or not bridge_is_up:
        found.add("tools", "unknown", "", "can be compared once the agent and the bridge are there")
        return
    try:
        async with asyncio.timeout(_TIMEOUT_S * 3):
            plan = found.plan = await make_plan(services, found.agent.id)
    except HanSoloError as error:
        found.add_fault("tools", "", error)
        return
    except TimeoutError:
        found.add("tools", "unknown", "", "the comparison took too long", "Try again.")
        return
    _describe_plan(found, plan)


def _describe_plan(found: Survey, plan: Plan) -> None:
    """Say all that is amiss: a conflict must not hide what dropped off."""
    if plan.refusal:
        found.add("tools", "failed", plan.refusal.reason, plan.refusal.sentence, plan.refusal.hint)
        return
    if plan.steps:
        drift = ", ".join(
            f"{kind_of(step).replace('_', ' ')} {target_of(step)}" for step in plan.steps
        )
        found.add(
            "drift", "failed", "",
            f"the agent is not as declared; missing: {drift}",
            "See and apply it with `han-solo sync-tools` (scripts/sync-tools).",
        )  # fmt: skip
    for conflict in plan.conflicts:
        found.add("conflict", "failed", conflict.kind, conflict.sentence, conflict.hint)
    for finding in plan.findings:
        if finding.kind == "undeclared_tool":
            found.add("undeclared", "warning", finding.target, finding.sentence, finding.hint)
    if plan.in_sync:
        found.add("tools", "ok", "", "in sync with what is declared")
