"""Which agent: its id, found, taken over or made; in one place, the table ``han_solo.agents``.

A known id that Letta answers with a confirmed 404 stops everything: a second agent made in its
place would look well and remember nothing. An agent is made under the lock, tagged at once, and
looked for by its tag first, so that a crash between making it and storing its id makes no second.
"""

from __future__ import annotations

from .. import logs
from ..errors import AgentGone, LettaError, UsageError
from ..letta.views import AgentView
from .journal import hold_lock
from .services import ReconcileServices

_log = logs.get("reconcile")


async def find_agent_id(services: ReconcileServices) -> str | None:
    """Return the agent's id, or None when there is no agent yet; makes and stores nothing.

    Raises:
        AgentGone: ``HAN_SOLO_AGENT_ID`` is a confirmed 404.
        UsageError: it names another agent than the database, and both are there.
    """
    stored = await services.known.load_agent_id()
    if services.agent_id and services.agent_id != stored:
        await _check_take_over(services, services.agent_id, stored)
        return services.agent_id
    if stored:
        return stored
    found = await _find_tagged(services)
    return found.id if found else None


async def ensure_agent(services: ReconcileServices) -> str:
    """Return the agent's id; make the agent from its spec when there is none.

    A new agent has its name, model and system prompt, and nothing of Letta's own tools; the sync
    gives it the rest.

    Raises:
        AgentGone: ``HAN_SOLO_AGENT_ID`` is a confirmed 404.
        UsageError: Letta has another agent of that name, or not the spec's model.
    """
    stored = await services.known.load_agent_id()
    if stored and services.agent_id in {None, stored}:
        return stored
    async with hold_lock(services.db, services.spec.name, clock=services.clock):
        if found := await find_agent_id(services):
            stored = await services.known.load_agent_id()
            if stored != found:
                await services.known.store_agent_id(found, replace=stored is not None)
            return found
        made = await _create(services)
        await services.known.store_agent_id(made.id)
    _log.info("reconcile.agent_created", agent_id=made.id, agent=services.spec.name)
    return made.id


async def _check_take_over(services: ReconcileServices, wanted: str, stored: str | None) -> None:
    """Refuse an id that Letta does not know, or in place of a stored agent that is still there."""
    if stored:
        try:
            await services.gateway.fetch_agent(stored)
        except AgentGone:
            _log.warning("reconcile.agent_gone", agent_id=stored, agent=services.spec.name)
        else:
            raise UsageError(
                f"HAN_SOLO_AGENT_ID is {wanted}, but {services.spec.name!r} is known as {stored}, "
                "and that agent is there.",
                hint="Unset it, or give the other agent a spec of its own with another name.",
            )
    await services.gateway.fetch_agent(wanted)


async def _find_tagged(services: ReconcileServices) -> AgentView | None:
    spec = services.spec
    named = await services.gateway.find_agents(spec.name)
    tagged = [view for view in named if spec.tag in view.tags]
    if len(tagged) > 1:
        raise UsageError(
            f"Letta has {len(tagged)} agents that han-solo made as {spec.name!r}: "
            f"{', '.join(view.id for view in tagged)}.",
            hint="Set HAN_SOLO_AGENT_ID to the right one.",
        )
    if not tagged and named:
        raise UsageError(
            f"Letta has an agent named {spec.name!r} already ({named[0].id}), and han-solo did not "
            "make it.",
            hint=f"Set HAN_SOLO_AGENT_ID={named[0].id} to take it over, or give the spec another "
            "name.",
        )
    return tagged[0] if tagged else None


async def _create(services: ReconcileServices) -> AgentView:
    spec = services.spec
    try:
        return await services.gateway.create_agent(
            name=spec.name,
            model=spec.model.handle,
            system=spec.system,
            description=spec.description,
            timezone=spec.timezone,
            tags=(spec.tag,),
        )
    except LettaError as error:
        handles = [model.handle for model in await services.gateway.fetch_models()]
        if spec.model.handle in handles:
            raise
        raise UsageError(
            f"Letta at {services.gateway.base_url} has no model {spec.model.handle}.",
            hint=f"Set HAN_SOLO_MODEL to one it has: {', '.join(sorted(handles)[:12]) or 'none'}; "
            "a missing provider lacks its key in Letta's environment.",
        ) from error
