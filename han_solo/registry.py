"""The registry: every declared tool, guard and job of this process, frozen once built.

Everything derived (MCP registration, the desired set, reference pages) reads from here, so a
duplicate name is an error and not a warning: half a registry is a wrong desired set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from .declare import GuardSpec, JobSpec, ToolSpec
from .errors import DeclarationError
from .principals import Audience, is_shown


@dataclass(frozen=True, slots=True)
class ListedTool:
    """One tool as MCP lists it: what a client sees, and all that Letta stores of it.

    The bridge's live list and the registry's projection are compared as these.
    """

    name: str
    description: str
    input_schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Registry:
    """The tools, guards and jobs of this process, each by name in sorted order."""

    tools: tuple[ToolSpec, ...]
    guards: tuple[GuardSpec, ...] = ()
    jobs: tuple[JobSpec, ...] = ()

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def get(self, name: str) -> ToolSpec | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    @property
    def callback_tools(self) -> frozenset[str]:
        """Return the names of the tools that may message the agent."""
        return frozenset(tool.name for tool in self.tools if tool.context == "operator")

    def shown_to(self, kind: Audience) -> tuple[ToolSpec, ...]:
        """Return the tools that a principal of that kind is shown."""
        return tuple(tool for tool in self.tools if is_shown(tool.audience, kind))


def build_registry(
    tools: Iterable[ToolSpec],
    guards: Iterable[GuardSpec] = (),
    jobs: Iterable[JobSpec] = (),
) -> Registry:
    """Build a registry.

    Raises:
        DeclarationError: when two tools, guards or jobs bear one name; both places are named.
    """
    return Registry(_by_name("tools", tools), _by_name("guards", guards), _by_name("jobs", jobs))


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...


N = TypeVar("N", bound=_Named)


def _by_name(kind: str, specs: Iterable[N]) -> tuple[N, ...]:
    by_name: dict[str, N] = {}
    for spec in specs:
        first = by_name.setdefault(spec.name, spec)
        if first is not spec:
            raise DeclarationError(
                f"Two {kind} are named {spec.name!r}: {first.source} and {spec.source}.",
                hint="Rename one of them.",
            )
    return tuple(by_name[name] for name in sorted(by_name))
