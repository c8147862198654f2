"""From a declared tool to what MCP serves: ``ToolSpec`` to FastMCP's tool, and the list of them.

``list_tools`` says without a server what the live one lists: the desired set of the reconciler,
``han-solo tools`` and the reference page are made from it, and the reconciler's brake compares it
with what the running bridge really answers.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final

from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult
from fastmcp.tools.function_tool import FunctionTool
from fastmcp.utilities.json_schema import dereference_refs
from mcp_types import ToolAnnotations

from ..context import MemoryContext
from ..declare import ToolSpec
from ..errors import DeclarationError
from ..principals import KIND_SCOPES, Audience
from ..registry import ListedTool, Registry
from ..serving import serving_agent
from .faults import to_tool_error
from .replies import build_reply

Bind = Callable[[ToolSpec], Awaitable[MemoryContext]]
"""Makes the context that a tool asked for, for the caller of this moment."""

_SECTION: Final = re.compile(r"(Args|Arguments|Raises):\s*$")


def build_tool(spec: ToolSpec, bind: Bind) -> FunctionTool:
    """Build FastMCP's tool: the context is bound per call and is not in the schema.

    Raises:
        DeclarationError: an annotation has no JSON schema.
    """
    call = _bind_context(spec, bind)
    try:
        tool = FunctionTool.from_function(
            call,
            name=spec.name,
            description=describe(spec),
            annotations=_annotate(spec),
            output_schema=None,
        )
    except Exception as error:
        raise DeclarationError(
            f"{spec.source}: tool {spec.name!r} has no schema: {type(error).__name__}: {error}.",
            hint="Annotate its arguments with types that JSON has.",
        ) from error
    # FastMCP would do it at each listing; done once, so that both lists are the same object's.
    tool.parameters = dereference_refs(tool.parameters)
    return tool


def list_tools(
    registry: Registry, kind: Audience, scopes: Collection[str] | None = None
) -> tuple[ListedTool, ...]:
    """List what the bridge shows a principal of that kind, by name.

    Args:
        registry: the declared tools.
        kind: whose list it is.
        scopes: what the principal's token holds; by default all that its kind may.
    """
    held = KIND_SCOPES[kind] if scopes is None else scopes
    return tuple(project(spec) for spec in registry.shown_to(kind) if spec.scope in held)


def project(spec: ToolSpec) -> ListedTool:
    """Return one tool as MCP lists it."""
    tool = build_tool(spec, _never_bound)
    return ListedTool(tool.name, tool.description or "", tool.parameters)


def describe(spec: ToolSpec) -> str:
    """Return the docstring without ``Args:`` (they are in the schema) and ``Raises:``."""
    kept: list[str] = []
    dropping = False
    for line in spec.description.splitlines():
        if line and not line[0].isspace():
            dropping = bool(_SECTION.match(line))
        if not dropping:
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def _bind_context(spec: ToolSpec, bind: Bind) -> Callable[..., Awaitable[ToolResult]]:
    """Wrap the function so that its signature is the caller's part of it.

    A ``functools.partial`` would do if annotations were not postponed; FastMCP finds none on one.
    """

    async def call(**arguments: Any) -> ToolResult:
        try:
            context = await bind(spec)
            caller = context.principal
            is_agent = caller.kind == "agent"
            marked = serving_agent(spec.name, caller.agent_id) if is_agent else None
            with marked or contextlib.nullcontext():
                value = await spec.function(context, **arguments)
            return build_reply(value, name=spec.name, effect=spec.effect)
        except ToolError:
            raise  # a reply that is too long
        except Exception as error:  # the edge: whatever a tool raises becomes its caller's text
            raise to_tool_error(error, tool=spec.name) from error

    signature = inspect.signature(spec.function)
    hints = typing.get_type_hints(spec.function, include_extras=True)
    kept = list(signature.parameters.values())[1:]
    returned = hints["return"]
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[parameter.replace(annotation=hints[parameter.name]) for parameter in kept],
        return_annotation=returned,
    )
    call.__annotations__ = {p.name: hints[p.name] for p in kept} | {"return": returned}
    call.__name__ = call.__qualname__ = spec.name
    call.__doc__ = spec.description
    return call


def _annotate(spec: ToolSpec) -> ToolAnnotations:
    """Say MCP's hints: a client such as Claude Code asks its user by them."""
    return ToolAnnotations(
        read_only_hint=spec.effect == "read",
        destructive_hint=spec.effect == "destructive",
        idempotent_hint=spec.effect == "read",
        open_world_hint=False,  # only the memory and the agent, nothing of the outside
    )


async def _never_bound(spec: ToolSpec) -> MemoryContext:
    raise AssertionError(f"{spec.name} was called without a server")
