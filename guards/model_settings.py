"""The guard against settings that another model left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from han_solo import CheckContext, Finding, guard

_OWN_GUARD: Final = {"enable_reasoner", "context_window"}

_OF_THE_PROVIDER: Final = ("model_endpoint_type", "model_endpoint", "provider_name")
"""Where the model is reached: Letta's own list of models says what these are for a handle."""


@guard(every_s=300, incident="silent-switch")
async def model_settings(context: CheckContext) -> tuple[Finding, ...]:
    """Find another model than the spec's, and settings that do not belong to it.

    Looked at are the settings that the spec declares, and the endpoint that Letta itself gives the
    model. What the spec leaves open is the server's own business.
    """
    config = (await context.agent()).llm_config
    declared = await context.model()
    handle = config.get("handle")
    found = list(
        _compare_declared(declared.settings(), config) if handle == declared.handle else ()
    )
    if handle != declared.handle:
        found.append(
            Finding(
                key="handle",
                summary=f"The agent runs {handle}, the spec says {declared.handle}.",
                hint=f"If that is meant, put it into the spec (or HAN_SOLO_MODEL); if not: "
                f"switch-model {declared.handle}",
                detail={"found": handle, "declared": declared.handle},
            )
        )
    offered = await context.letta.fetch_model_config(str(handle))
    if offered is None:
        found.append(
            Finding(
                key="handle_unknown",
                summary=f"Letta has no model {handle} any more, and the agent runs on it.",
                hint="See the provider's key in Letta's environment and `han-solo providers list`.",
                severity="critical",
                detail={"handle": handle},
            )
        )
    else:
        found.extend(_compare_endpoint(offered, config))
    return tuple(found)


def _compare_declared(
    declared: Mapping[str, object], config: Mapping[str, object]
) -> Iterator[Finding]:
    for name, wanted in sorted(declared.items()):
        if name not in _OWN_GUARD and config.get(name) != wanted:
            yield Finding(
                key=name,
                summary=f"{name} is {config.get(name)} in Letta and {wanted} in the spec.",
                hint="sync-tools puts it back; if it is meant, put it into the spec.",
                detail={"found": config.get(name), "declared": wanted},
            )


def _compare_endpoint(
    offered: Mapping[str, object], config: Mapping[str, object]
) -> Iterator[Finding]:
    for name in _OF_THE_PROVIDER:
        if offered.get(name) != config.get(name):
            yield Finding(
                key=name,
                summary=f"{name} is {config.get(name)}; Letta reaches {config.get('handle')} with "
                f"{offered.get(name)}.",
                hint=f"It was left from another model. Switch anew: switch-model "
                f"{config.get('handle')}",
                severity="critical",
                detail={"found": config.get(name), "offered": offered.get(name)},
            )
