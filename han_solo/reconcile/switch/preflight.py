"""What is asked before anything is changed: may this agent get this model, and what would change.

Reads only. A refusal is a ``PlanRefused`` with a reason: ``unknown_model``,
``not_allowed``, ``no_key``, ``key_refused``, ``window_shrinks``, ``no_room``, ``no_budget``,
``nothing_recorded`` or ``changed_since``.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...errors import LettaError, ModelFailed, PlanRefused
from ...letta.views import AgentView
from . import reasoning
from .config import (
    Asked,
    Config,
    FieldChange,
    build_config,
    build_fields,
    build_recorded,
    largest_window,
)
from .journal import SwitchRow, load_last
from .plan import Note, SwitchPlan
from .services import SwitchServices

UNAUTHORIZED = (401, 403)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody wants: another model, or (``handle`` None) that from before the last switch.

    ``carry`` False takes nothing over from the old model.
    """

    handle: str | None
    asked: Asked = field(default_factory=Asked)
    carry: bool = True


async def make_switch_plan(services: SwitchServices, agent_id: str, wanted: Wanted) -> SwitchPlan:
    """Return what the switch would do now, and change nothing.

    Raises:
        PlanRefused: it may not be done; says why.
        AgentGone: a confirmed 404 of the agent.
        LettaError: Letta did not answer everything.
    """
    agent = await services.gateway.fetch_agent(agent_id)
    last = None if wanted.handle else await _load_last(services, agent)
    handle = wanted.handle or (last.from_handle if last else "")
    offered = await _find_model(services, agent, handle)
    _require_allowed(services, handle)
    notes = await _check_key(services, offered)
    spec = services.spec.model
    if last is None:
        fields = build_fields(agent.llm_config, offered, spec, wanted.asked, carry=wanted.carry)
        _require_window(agent, fields, offered)
    else:
        fields = build_recorded(agent.llm_config, last.old_config, offered, spec)
    config = build_config(fields)
    _require_room(config)
    notes += _list_concerns(config, offered)
    return SwitchPlan(
        agent_id=agent_id,
        agent_name=services.spec.name,
        is_back=last is not None,
        spec_handle=spec.handle,
        old_config=agent.llm_config,
        fields=fields,
        tools={tool.id: tool.name for tool in agent.tools},
        notes=tuple(notes),
    )


async def _load_last(services: SwitchServices, agent: AgentView) -> SwitchRow:
    last = await load_last(services.db, agent.id)
    now = agent.llm_config.get("handle")
    if last is None:
        raise PlanRefused(
            f"{services.spec.name} was never switched with switch-model, so there is nothing to go "
            "back to.",
            reason="nothing_recorded",
            hint=f"It runs {now}; name the model that it is to run.",
        )
    if now != last.to_handle:
        raise PlanRefused(
            f"{services.spec.name} runs {now}; the last switch was to {last.to_handle}, so "
            "somebody changed it since.",
            reason="changed_since",
            hint=f"Name the model that it is to run; the last one before was {last.from_handle}.",
        )
    return last


async def _find_model(services: SwitchServices, agent: AgentView, handle: str) -> Config:
    """Return Letta's listing of the model; it lists each handle once."""
    listed = await services.gateway.fetch_model_configs()
    found = next((model for model in listed if model.get("handle") == handle), None)
    if found is None:
        raise _unknown(services, agent, handle, listed)
    return found


def _unknown(
    services: SwitchServices, agent: AgentView, handle: str, listed: tuple[Config, ...]
) -> PlanRefused:
    handles = sorted({str(model.get("handle")) for model in listed})
    close = _find_close(handle, handles)
    provider = handle.partition("/")[0]
    if close:
        hint = f"Did you mean {' or '.join(close)}?"
    elif any(one.startswith(f"{provider}/") for one in handles):
        same = [one for one in handles if one.startswith(f"{provider}/")]
        hint = f"Of {provider} it has {', '.join(same[:12])}."
    else:
        hint = (
            f"It has {', '.join(handles[:12]) or 'none'}; a provider of your own is added with "
            "han-solo providers add."
        )
    return PlanRefused(
        f"Letta at {services.gateway.base_url} has no model {handle}; {services.spec.name} stays "
        f"on {agent.llm_config.get('handle')}.",
        reason="unknown_model",
        hint=hint,
    )


def _find_close(handle: str, handles: list[str]) -> list[str]:
    """Return what was probably meant: by the model's own name, since providers' are long and alike.

    Somebody who leaves the provider out means the models that end so.
    """
    model = handle.rpartition("/")[2]
    names = {one.rpartition("/")[2] for one in handles}
    meant = difflib.get_close_matches(model, names, n=3, cutoff=0.7)
    return [one for name in meant for one in handles if one.rpartition("/")[2] == name]


def _require_allowed(services: SwitchServices, handle: str) -> None:
    spec = services.spec
    if spec.model.allows(handle):
        return
    raise PlanRefused(
        f"The agent spec does not allow {handle} for {spec.name}.",
        reason="not_allowed",
        hint=f"Allowed are {', '.join((spec.model.handle, *(spec.model.allowed or ())))}; the list "
        f"is [model] allowed in {spec.path}.",
    )


async def _check_key(services: SwitchServices, offered: Config) -> list[Note]:
    """Refuse a provider without a key that works, where Letta can tell.

    Of providers whose key stands in Letta's environment it tells nothing; there the canary decides.
    """
    if offered.get("provider_category") != "byok":
        return []
    name = str(offered.get("provider_name"))
    provider = next(
        (one for one in await services.gateway.fetch_providers() if one.name == name), None
    )
    if provider is None or not provider.has_key:
        raise PlanRefused(
            f"Letta has no key for the provider {name}.",
            reason="no_key",
            hint=f"han-solo providers add {name} --replace-key",
        )
    try:
        await services.gateway.check_provider(provider.id)
    except ModelFailed as error:
        if error.status_code in UNAUTHORIZED:
            raise PlanRefused(
                f"The provider {name} refuses the key that Letta has for it.",
                reason="key_refused",
                hint=f"han-solo providers add {name} --replace-key",
            ) from error
        return [_unchecked(name, error)]
    except LettaError as error:  # not every type can be asked
        return [_unchecked(name, error)]
    return []


def _unchecked(name: str, error: LettaError) -> Note:
    return Note(
        "key_not_checked",
        f"Whether {name} takes its key could not be asked ({error.message.rstrip('.')}); the "
        "canary will tell.",
    )


def _require_window(agent: AgentView, fields: tuple[FieldChange, ...], offered: Config) -> None:
    """Refuse to shorten the agent's memory without being told to."""
    window = next((field for field in fields if field.name == "context_window"), None)
    largest = largest_window(offered)
    if window is None or window.why in {"asked", "declared", "model"} or largest is None:
        return
    if isinstance(window.new, int) and window.new > largest:
        handle = offered.get("handle")
        raise PlanRefused(
            f"{handle} takes {largest:,} tokens, as Letta has it, and {agent.name} has a context "
            f"window of {window.new:,}: its memory would be shortened.",
            reason="window_shrinks",
            hint=f"If that is meant: --context-window {largest}. If Letta is wrong about the "
            "model, give the number that it takes.",
        )


def _require_room(config: Mapping[str, object]) -> None:
    window, answer = config.get("context_window"), config.get("max_tokens")
    if isinstance(window, int) and isinstance(answer, int) and answer >= window:
        raise PlanRefused(
            f"max_tokens of {answer:,} leaves no room in a context window of {window:,}.",
            reason="no_room",
            hint="Give fewer with --max-tokens, or a larger window with --context-window.",
        )
    rule = reasoning.lacks_budget(config)
    if rule is not None:
        raise PlanRefused(
            f"The spec turns the reasoner on with {config.get('max_reasoning_tokens') or 0} "
            f"max_reasoning_tokens, and {config.get('model')} {rule.sentence}",
            reason="no_budget",
            hint=f"Set enable_reasoner = false in the spec; see {rule.source}.",
        )


def _list_concerns(config: Mapping[str, object], offered: Config) -> list[Note]:
    notes = []
    rule = reasoning.find_concern(config)
    if rule is not None:
        notes.append(Note("reasoning", f"{config.get('model')} {rule.sentence}", rule.source))
    largest, window = largest_window(offered), config.get("context_window")
    if isinstance(window, int) and largest is not None and window < largest:
        notes.append(
            Note(
                "larger_window",
                f"The model takes {largest:,} tokens, as Letta has it, and gets {window:,}; "
                "--context-window gives it more.",
            )
        )
    return notes
