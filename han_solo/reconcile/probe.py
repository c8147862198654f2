"""Probe new tools: run each once through Letta, on the way the agent's own calls take.

Only tools that read, and only those that need no argument: what a made-up argument would prove of
the others is not worth what it might do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from ..errors import HanSoloError, LettaUnavailable
from ..letta.views import ToolRun
from ..registry import ListedTool
from .plan import AttachTool, Plan, RegisterServer, RegisterTool, UpdateTool


class Runner(Protocol):
    """The part of ``LettaGateway`` that runs a tool."""

    async def run_tool(
        self, agent_id: str, tool_name: str, arguments: dict[str, object]
    ) -> ToolRun: ...


@dataclass(frozen=True, slots=True)
class Probe:
    """What became of one tool's probe; ``words`` say why it failed or was skipped."""

    tool: str
    outcome: Literal["worked", "failed", "skipped"]
    words: str


def find_new(plan: Plan) -> tuple[str, ...]:
    """Return the tools that a carried-out plan registered, updated or attached, by name."""
    names: set[str] = set()
    for step in plan.steps:
        match step:
            case RegisterServer(tools=tools):
                names.update(tools)
            case RegisterTool() | UpdateTool() | AttachTool():
                names.add(step.name)
            case _:
                pass
    return tuple(sorted(names))


async def probe_tools(
    gateway: Runner,
    agent_id: str,
    names: Iterable[str],
    listed: Iterable[ListedTool],
    reads: frozenset[str],
) -> tuple[Probe, ...]:
    """Run each named tool that reads and needs no argument, one after the other.

    Args:
        gateway: Letta.
        agent_id: the agent they are attached to.
        names: the tools to probe.
        listed: what the registry declares.
        reads: names of the tools whose effect is to read.

    Raises:
        LettaUnavailable: Letta itself is away.
    """
    tools = {tool.name: tool for tool in listed}
    return tuple(
        [
            await _probe(gateway, agent_id, tools[name], is_read=name in reads)
            for name in names
            if name in tools
        ]
    )


async def _probe(gateway: Runner, agent_id: str, tool: ListedTool, *, is_read: bool) -> Probe:
    if not is_read:
        return Probe(tool.name, "skipped", "it writes")
    required = tool.input_schema.get("required")
    if isinstance(required, list) and required:
        return Probe(tool.name, "skipped", f"it needs {', '.join(map(str, required))}")
    try:
        run = await gateway.run_tool(agent_id, tool.name, {})
    except LettaUnavailable:
        raise
    except HanSoloError as error:
        return Probe(tool.name, "failed", error.message)
    if not run.succeeded:
        return Probe(tool.name, "failed", "Letta reports an error; the bridge's log says more")
    return Probe(tool.name, "worked", f"{len(run.text):,} characters came back")
