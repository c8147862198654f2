"""Give an agent another model: its configuration alone, then its tools only if they went missing.

Two calls that are never one: older servers dropped every tool when ``llm_config`` and ``tool_ids``
came together. Each is read back.
"""

from __future__ import annotations

from ..errors import UsageError
from ..letta.gateway import LettaGateway
from ..letta.views import AgentView
from .spec import ModelSpec
from .verify import differs


async def switch_model(gateway: LettaGateway, agent_id: str, model: ModelSpec) -> AgentView:
    """Switch the agent to the spec's model, with what the spec declares of its settings.

    Raises:
        UsageError: Letta has no such model; nothing was changed.
        WriteNotVerified: a step was accepted and can not be read back.
    """
    agent = await gateway.fetch_agent(agent_id)
    offered = await gateway.fetch_model_config(model.handle)
    if offered is None:
        handles = sorted(view.handle for view in await gateway.fetch_models())
        raise UsageError(
            f"Letta has no model {model.handle}; {agent.name} stays on "
            f"{agent.llm_config.get('handle')}.",
            hint=f"It has {', '.join(handles[:12]) or 'none'}: set HAN_SOLO_MODEL to one of them, "
            "or give its provider a key that works.",
        )
    # The agent's own fields decide the shape; Letta's listing of a model has others beside them.
    config = {name: offered.get(name, value) for name, value in agent.llm_config.items()}
    config |= {"enable_reasoner": False, **model.settings()}
    switched = await gateway.patch_llm_config(agent_id, config)
    for name in ("handle", "model", "enable_reasoner", *model.settings()):
        if switched.llm_config.get(name) != config.get(name):
            raise differs(
                f"the new {name} of the model",
                str(config.get(name)),
                str(switched.llm_config.get(name)),
            )
    attached = {tool.id for tool in agent.tools}
    if {tool.id for tool in switched.tools} != attached:
        switched = await gateway.patch_tool_ids(agent_id, sorted(attached))
        found = {tool.id for tool in switched.tools}
        if found != attached:
            raise differs("the tools of before", f"{len(attached)} tools", f"{len(found)} tools")
    return switched
