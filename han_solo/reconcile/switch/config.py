"""The new configuration of a switch, made from the old one and Letta's listing of the model. Pure.

Three kinds of fields: those that say which model it is come from the listing; those that only some
providers know are carried where the new one knows them, and else taken from the listing; all others
are carried as they were. ``enable_reasoner`` is never carried: a config that inherited it has made
an agent mute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ..spec import ModelSpec

Config = Mapping[str, object]

IDENTITY: Final = frozenset(
    {
        "handle",
        "model",
        "model_endpoint_type",
        "model_endpoint",
        "provider_name",
        "provider_category",
        "model_wrapper",
        "put_inner_thoughts_in_kwargs",
        "compatibility_type",
        "tier",
        "tool_call_parser",
        "return_token_ids",
    }
)
"""What says which model it is and how it is reached; never the old one's."""

_ANTHROPIC: Final = frozenset({"anthropic", "bedrock", "minimax"})
_GOOGLE: Final = frozenset({"google_ai", "google_vertex"})

_UNKNOWN_TO: Final[Mapping[str, frozenset[str]]] = {
    "frequency_penalty": _ANTHROPIC | _GOOGLE,
    "return_logprobs": _ANTHROPIC | _GOOGLE,
    "top_logprobs": _ANTHROPIC | _GOOGLE,
    "response_format": _GOOGLE,
}
"""Fields that Letta's clients for these endpoint types never look at."""

_BUDGETED: Final = _ANTHROPIC | _GOOGLE | {"openrouter"}
"""Endpoint types with a reasoning budget in tokens; others are given ``max_reasoning_tokens`` 0."""

_LEVELS: Final = frozenset({"reasoning_effort", "effort", "verbosity"})
"""Levels that a model has by name. Another model may refuse a level, so they are carried only
between models of one family."""

_MAX_TEMPERATURE: Final[Mapping[str, float]] = dict.fromkeys(_ANTHROPIC, 1.0)
"""Anthropic takes 0 to 1; the others take up to 2, as Letta does."""

Why = Literal["model", "carried", "declared", "asked", "always_off", "provider", "recorded"]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of the configuration: what it is, what it becomes, and why that.

    ``why``: ``model``: of the new model, as Letta lists it; ``carried``: as it was; ``declared``:
    the agent spec says so; ``asked``: on the command line; ``always_off``: the reasoner;
    ``provider``: the new provider does not know the old value; ``recorded``: as it was before the
    last switch.
    """

    name: str
    old: object
    new: object
    why: Why

    @property
    def is_change(self) -> bool:
        return self.old != self.new


@dataclass(frozen=True, slots=True)
class Asked:
    """Settings asked for at the command line; None is not asked for. Both in tokens."""

    context_window: int | None = None
    max_tokens: int | None = None

    def settings(self) -> dict[str, object]:
        """Return what was asked for, under Letta's names."""
        pairs = {"context_window": self.context_window, "max_tokens": self.max_tokens}
        return {name: value for name, value in pairs.items() if value is not None}


def build_fields(
    old: Config, offered: Config, spec: ModelSpec, asked: Asked, *, carry: bool = True
) -> tuple[FieldChange, ...]:
    """Return every field of the agent's configuration with its new value.

    Args:
        old: the agent's configuration; its fields decide the shape.
        offered: Letta's listing of the new model, which has others beside them.
        spec: the spec's model; what it declares counts only for its own handle.
        asked: what was asked for.
        carry: False takes nothing over from the old model but what no listing has.
    """
    handle = offered.get("handle")
    declared = spec.settings() if spec.handle == handle else {}
    built = []
    for name, value in old.items():
        new, why = _choose(name, value, old, offered) if carry else _take(name, value, offered)
        if name in declared:
            new, why = declared[name], "declared"
        if name in asked.settings():
            new, why = asked.settings()[name], "asked"
        if name == "enable_reasoner":
            on = bool(declared.get(name, False))
            new, why = (True, "declared") if on else (False, "always_off")
        built.append(FieldChange(name, value, new, why))
    return tuple(built)


def build_recorded(
    old: Config, recorded: Config, offered: Config, spec: ModelSpec
) -> tuple[FieldChange, ...]:
    """Return the fields of the configuration from before the last switch.

    How the model is reached may have changed since, so that is taken from Letta's listing.
    """
    on = spec.enable_reasoner and spec.handle == offered.get("handle")
    built = []
    for name, value in old.items():
        new, why = recorded.get(name, value), "recorded"
        if name in IDENTITY and name in offered:
            new, why = offered[name], "model"
        if name == "enable_reasoner":
            new, why = (True, "declared") if on else (False, "always_off")
        built.append(FieldChange(name, value, new, why))  # type: ignore[arg-type]
    return tuple(built)


def build_config(fields: tuple[FieldChange, ...]) -> dict[str, object]:
    """Return the configuration that is sent: complete, the fields in the agent's own order."""
    return {field.name: field.new for field in fields}


def largest_window(offered: Config) -> int | None:
    """Return the most that the model takes, in tokens, as Letta has it."""
    sizes = [offered.get("max_context_window"), offered.get("context_window")]
    known = [size for size in sizes if isinstance(size, int) and size > 0]
    return max(known, default=None)


def _take(name: str, value: object, offered: Config) -> tuple[object, Why]:
    if name == "display_name":
        return None, "model"
    return offered.get(name, value), "model"


def _choose(name: str, value: object, old: Config, offered: Config) -> tuple[object, Why]:
    endpoint = str(offered.get("model_endpoint_type"))
    if name == "display_name":  # the listing's is the bare name, which Letta itself never stores
        same = offered.get("handle") == old.get("handle")
        return (value, "carried") if same else (None, "model")
    if name in IDENTITY:
        return offered.get(name, value), "model"
    is_known = endpoint not in _UNKNOWN_TO.get(name, ())
    if name == "max_reasoning_tokens":
        is_known = endpoint in _BUDGETED
    if name in _LEVELS:
        is_known = _family(old) == _family(offered)
    if name == "temperature" and isinstance(value, int | float):
        most = _MAX_TEMPERATURE.get(endpoint)
        if most is not None and value > most:
            return most, "provider"
    if not is_known:
        new = offered.get(name, value)
        return (value, "carried") if new == value else (new, "provider")
    return value, "carried"


def _family(config: Config) -> tuple[str, str]:
    """Return what models share that take the same levels: the endpoint and the name's first part.

    Letta lists ``gpt-5.1-mini`` and ``gpt-5.1`` at one endpoint: one family. ``gpt-5`` is another.
    """
    model = str(config.get("model") or "").rpartition("/")[2]
    return str(config.get("model_endpoint_type")), "-".join(model.split("-")[:2])
