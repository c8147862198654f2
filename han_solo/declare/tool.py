"""``@tool``: an annotated async function becomes a frozen ``ToolSpec``.

MCP registration, the desired set and the reference pages are projections of the specs.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from ..errors import DeclarationError
from ..principals import AUDIENCES, Audience, Effect
from .arguments import find_strange_entries
from .letta_names import LETTA_BUILTINS

ContextLevel = Literal["memory", "block", "operator"]

MAX_NAME_CHARS: Final = 48
"""Letta refuses longer names, and one such name makes its whole refresh a 400."""

SPEC_ATTRIBUTE: Final = "__han_solo_tool__"
MODULE_SPECS: Final = "__han_solo_tools__"
"""The list of a module's specs: a second function of one name hides the first, not its spec."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")

ToolFunction = Callable[..., Awaitable[Any]]
F = TypeVar("F", bound=ToolFunction)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool, as declared.

    ``scope`` is what a token needs to call it; ``parameters`` are the names the caller may give,
    the context not among them; ``source`` is where it is declared (``file:line``).
    """

    name: str
    function: ToolFunction
    description: str
    effect: Effect
    audience: Audience
    context: ContextLevel
    scope: str
    parameters: tuple[str, ...]
    family: str
    source: str


def tool(
    *, effect: Effect, audience: Audience = "agent", scope: str | None = None
) -> Callable[[F], F]:
    """Declare an async function as a tool.

    The function's name is the tool's public name for ever, its docstring is read by a model, and
    the annotation of its first parameter says what it may touch: ``MemoryContext``,
    ``BlockContext`` or ``OperatorContext``.

    Args:
        effect: read, write or destructive.
        audience: the least trusted kind of caller that is shown it.
        scope: what a token needs to call it; by default ``<context>:<read or write>``.

    Raises:
        DeclarationError: at once, with the file and line, when the function can not be a tool.
    """

    def declare(function: F) -> F:
        spec = _build_spec(function, effect, audience, scope)
        setattr(function, SPEC_ATTRIBUTE, spec)
        function.__globals__.setdefault(MODULE_SPECS, []).append(spec)
        return function

    return declare


def _build_spec(
    function: ToolFunction, effect: Effect, audience: Audience, scope: str | None
) -> ToolSpec:
    name = getattr(function, "__name__", "?")
    code = getattr(function, "__code__", None)
    source = f"{code.co_filename}:{code.co_firstlineno}" if code else "?"

    def refuse(why: str, hint: str) -> DeclarationError:
        return DeclarationError(f"{source}: tool {name!r} {why}.", hint=hint)

    if not inspect.iscoroutinefunction(function):
        raise refuse("is not an async function", "Declare it with `async def`.")
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        raise refuse(
            f"needs a name of lower-case letters, digits and _, at most {MAX_NAME_CHARS} long",
            "Rename the function.",
        )
    if audience not in AUDIENCES:
        raise refuse(f"has no audience {audience!r}", f"Use one of {', '.join(AUDIENCES)}.")
    if effect not in typing.get_args(Effect):
        raise refuse(
            f"has no effect {effect!r}", f"Use one of {', '.join(typing.get_args(Effect))}."
        )
    description = inspect.getdoc(function)
    if not description:
        raise refuse("has no docstring", "Say when to use it and bound each argument.")
    context, parameters = _read_signature(function, refuse)
    if strange := find_strange_entries(description, parameters):
        raise refuse(
            f"has no argument {', '.join(strange)}, which its docstring lists under Args",
            f"It has {', '.join(parameters) or 'none'}: mend the entry, or it is lost.",
        )
    if audience == "agent":
        _refuse_in_agent_set(name, context, effect, refuse)
    return ToolSpec(
        name=name,
        function=function,
        description=description,
        effect=effect,
        audience=audience,
        context=context,
        scope=scope or _default_scope(context, effect),
        parameters=parameters,
        family=function.__module__.rpartition(".")[2],
        source=source,
    )


def _refuse_in_agent_set(
    name: str,
    context: ContextLevel,
    effect: Effect,
    refuse: Callable[[str, str], DeclarationError],
) -> None:
    if name in LETTA_BUILTINS:
        raise refuse(
            "bears the name of a Letta built-in, which Letta overwrites at every start",
            "Choose another name, or audience='client'.",
        )
    if context == "operator":
        raise refuse(
            "asks for an OperatorContext in the agent's set: a tool that messages the agent "
            "while the agent waits for it is a deadlock",
            "Use audience='operator' or 'client', or ask for a weaker context.",
        )
    if effect == "destructive":
        raise refuse(
            "is destructive and in the agent's set",
            "Use audience='operator': the agent can not erase.",
        )


def _default_scope(context: ContextLevel, effect: Effect) -> str:
    if effect == "destructive":
        return "operator:write"
    area = {"memory": "memory", "block": "blocks", "operator": "operator"}[context]
    return f"{area}:{effect}"


def _read_signature(
    function: ToolFunction, refuse: Callable[[str, str], DeclarationError]
) -> tuple[ContextLevel, tuple[str, ...]]:
    """Return the context's level and the caller's parameters, all of them annotated."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise refuse(
            f"has an annotation that can not be resolved ({error})",
            "Import the name at run time, not under TYPE_CHECKING.",
        ) from error
    names = list(inspect.signature(function).parameters.values())
    level = getattr(hints.get(names[0].name), "level", None) if names else None
    if level not in typing.get_args(ContextLevel):
        raise refuse(
            "does not name a context as its first parameter",
            "Annotate it as MemoryContext, BlockContext or OperatorContext.",
        )
    missing = [name.name for name in names[1:] if name.name not in hints]
    if "return" not in hints:
        missing.append("the return value")
    if missing:
        raise refuse(
            f"has no annotation for {', '.join(missing)}", "Annotate each: they are its schema."
        )
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in names):
        raise refuse("takes *args or **kwargs", "Name each argument: they are its schema.")
    if any(p.kind is p.POSITIONAL_ONLY for p in names[1:]):
        raise refuse("has arguments without a name", "Take out the `/`: MCP passes them by name.")
    return typing.cast("ContextLevel", level), tuple(p.name for p in names[1:])


def spec_of(function: ToolFunction) -> ToolSpec:
    """Return the spec that ``@tool`` attached to the function."""
    spec = getattr(function, SPEC_ATTRIBUTE, None)
    if not isinstance(spec, ToolSpec):
        raise DeclarationError(f"{function!r} is not a tool.", hint="Decorate it with @tool.")
    return spec
