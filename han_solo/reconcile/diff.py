"""``diff(desired, observed) -> Plan``: pure, and additive unless asked.

The brakes come first. Registering a server or a tool makes Letta take over names, so it happens
only when the bridge lists exactly what the registry declares and none of the names is anyone
else's; otherwise the whole plan is refused and nothing is touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from . import diff_agent
from .model import (
    Consent,
    Desired,
    DesiredTool,
    Listing,
    NoListing,
    Observed,
    ObservedServer,
    ObservedTool,
)
from .plan import (
    Finding,
    Plan,
    Refusal,
    RegisterServer,
    RegisterTool,
    Step,
    UpdateServer,
    UpdateTool,
)

MAX_NAMED: Final = 8
"""Names spelled out in one sentence; more are counted."""


def diff(desired: Desired, observed: Observed, *, consent: Collection[Consent] = ()) -> Plan:
    """Compare the two states.

    Args:
        desired: what is to be.
        observed: what is.
        consent: removals that were asked for; without them nothing is detached.
    """
    server = _find_server(desired, observed)
    refusal = (
        _check_listing(desired, observed)
        or _check_server(desired, observed, server)
        or _check_names(desired, observed, server)
    )
    if refusal:
        return Plan(refusal=refusal)
    tools = _diff_tools(desired, observed, server)
    agent = diff_agent.diff_agent(desired, observed, tools.usable, frozenset(consent))
    return Plan(
        steps=(*tools.steps, *agent.steps),
        findings=(*tools.findings, *agent.findings),
    )


def _find_server(desired: Desired, observed: Observed) -> ObservedServer | None:
    return next((row for row in observed.servers if row.name == desired.server.name), None)


def _is_ours(tool: ObservedTool, desired: Desired) -> bool:
    return tool.server == desired.server.name


def _was_ours(row: ObservedTool, tool: DesiredTool) -> bool:
    """Say whether it is the declared tool to the letter, without a mark of whose it is.

    Nobody loses it when it is registered again: without the mark Letta can not run it.
    """
    return row.lost_its_server and row.fingerprint == tool.fingerprint


def _check_listing(desired: Desired, observed: Observed) -> Refusal | None:
    match observed.listing:
        case NoListing(why, hint):
            return Refusal(
                "bridge_cold",
                f"The bridge at {desired.server.url} gives no list of its tools: {why}",
                hint or "Start it (han-solo bridge, or han-solo up), and run again.",
            )
        case Listing(listed):
            if not listed and desired.tools:
                return Refusal(
                    "bridge_cold",
                    f"The bridge at {desired.server.url} lists no tools, and the registry has "
                    f"{len(desired.tools)}.",
                    "Wait until it is up, or restart it; nothing was changed.",
                )
    lists = {tool.name: tool.fingerprint for tool in listed}
    wants = {tool.name: tool.fingerprint for tool in desired.tools}
    faults = [
        *_name("it lacks", wants.keys() - lists.keys()),
        *_name("it has besides", lists.keys() - wants.keys()),
        *_name(
            "another schema or description for",
            (name for name in wants.keys() & lists.keys() if wants[name] != lists[name]),
        ),
    ]
    if not faults:
        return None
    return Refusal(
        "bridge_differs",
        f"The bridge at {desired.server.url} does not list what the registry declares: "
        f"{'; '.join(faults)}.",
        "It runs older or newer code, or its token sees another set: restart the bridge from this "
        "installation and run again; nothing was changed.",
    )


def _check_server(
    desired: Desired, observed: Observed, server: ObservedServer | None
) -> Refusal | None:
    """Refuse when the name belongs to a server that is not our bridge.

    Ours is one that we remember registering, or that has our address or our token: the address
    changes when the bridge moves and the token when it is rotated, not both unseen.
    """
    wanted = desired.server
    if (
        server is None
        or server.id in observed.known.server_ids
        or server.url == wanted.url
        or server.token == wanted.token
    ):
        return None
    return Refusal(
        "server_name_taken",
        f"Letta has an MCP server named {wanted.name!r} at {server.url or 'no URL'}, and han-solo "
        "did not register it.",
        "Set HAN_SOLO_BRIDGE_NAME to a name that is free, or rename that server in Letta; nothing "
        "was changed.",
    )


def _check_names(
    desired: Desired, observed: Observed, server: ObservedServer | None
) -> Refusal | None:
    """Before the first registration, which takes over every name: refuse on any collision."""
    if server is not None:
        return None
    wanted = desired.names()
    taken = [
        f"{tool.name} ({tool.describe_owner()})"
        for tool in observed.tools
        if tool.name in wanted and not _is_ours(tool, desired)
    ]
    if not taken:
        return None
    return Refusal(
        "name_collision",
        f"Names of ours belong to others in Letta: {_list(taken)}. Registering the bridge would "
        "take them over.",
        "Rename those tools in Letta or ours in the registry, then run again; nothing was changed.",
    )


@dataclass(slots=True)
class _Tools:
    """Steps and findings about the organisation's tools; ``usable`` can be attached after them."""

    steps: list[Step] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    usable: dict[str, ObservedTool | None] = field(default_factory=dict)


def _diff_tools(desired: Desired, observed: Observed, server: ObservedServer | None) -> _Tools:
    result = _Tools()
    if not desired.tools:
        return result
    if server is None:
        names = tuple(tool.name for tool in desired.tools)
        result.steps.append(RegisterServer(desired.server.name, desired.server.url, names))
    else:
        changes = [
            *(["url"] if server.url != desired.server.url else []),
            *(["token"] if server.token != desired.server.token else []),
        ]
        if changes:
            result.steps.append(UpdateServer(server.id, server.name, tuple(changes)))  # type: ignore[arg-type]
    for tool in desired.tools:
        rows = observed.named(tool.name)
        ours = next((r for r in rows if _is_ours(r, desired) or _was_ours(r, tool)), None)
        if len(rows) > 1:
            result.findings.append(_duplicate(tool.name, rows))
        elif rows and ours is None:
            result.findings.append(_foreign(tool.name, rows[0]))
        elif server is not None and ours is None:
            result.steps.append(RegisterTool(tool.name))
        elif server is not None and ours and not _is_fresh(ours, tool):
            result.steps.append(UpdateTool(tool.name, ours.id))
        if ours is not None or not rows:
            result.usable[tool.name] = ours
    return result


def _is_fresh(row: ObservedTool, tool: DesiredTool) -> bool:
    return not row.lost_its_server and row.fingerprint == tool.fingerprint


def _foreign(name: str, row: ObservedTool) -> Finding:
    return Finding(
        "foreign_name",
        name,
        f"{name} belongs to {row.describe_owner()} in Letta, so ours is not registered.",
        "Rename one of the two; registering ours would overwrite the other for every agent.",
        is_conflict=True,
    )


def _duplicate(name: str, rows: Iterable[ObservedTool]) -> Finding:
    owners = ", ".join(f"{row.id} ({row.describe_owner()})" for row in rows)
    return Finding(
        "duplicate_name",
        name,
        f"Letta has several tools named {name}: {owners}. None is registered anew.",
        "Decide which one stays and rename the other in Letta.",
        is_conflict=True,
    )


def _name(words: str, names: Iterable[str]) -> list[str]:
    found = sorted(names)
    return [f"{words} {_list(found)}"] if found else []


def _list(words: Collection[str]) -> str:
    shown = ", ".join(list(words)[:MAX_NAMED])
    return f"{shown} and {len(words) - MAX_NAMED} more" if len(words) > MAX_NAMED else shown
