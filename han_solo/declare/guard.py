"""``@guard``: an async check becomes a frozen ``GuardSpec``, with one remedy at most.

A check looks and returns findings; its context has nothing that writes. A remedy acts on them, and
the runner then checks again: only the check says that something was repaired.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar, get_args

from ..errors import DeclarationError

Severity = Literal["warning", "critical"]
"""``critical``: the agent is mute, maimed or not itself now; ``warning``: it will matter soon."""

GuardMode = Literal["observe", "repair"]
"""``observe`` records and alerts; ``repair`` applies the remedy too."""

GUARD_SPECS: Final = "__han_solo_guards__"
"""The list of a module's guards."""

_ATTRIBUTE: Final = "__han_solo_guard__"
_SLUG = re.compile(r"[a-z][a-z0-9-]*")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong now.

    Args:
        key: what it is about, the same at each run: a tool, a block's label, a field. There is one
            open row for a guard, an agent and a key.
        summary: one sentence: what is wrong.
        hint: one sentence: what to do about it.
        severity: how soon someone should look.
        detail: figures, ids, times, as JSON values; never text from the memory.
    """

    key: str
    summary: str
    hint: str
    severity: Severity = "warning"
    detail: Mapping[str, object] = field(default_factory=dict)


Check = Callable[..., Awaitable[tuple[Finding, ...]]]
"""Takes a ``CheckContext``, which lies in a layer above."""

Remedy = Callable[..., Awaitable[str]]
"""Takes a ``RemedyContext`` and the findings; acts on them and returns one sentence that says what
was done; raises when it can not."""

C = TypeVar("C", bound=Check)


@dataclass(frozen=True, slots=True)
class GuardSpec:
    """One guard, as declared.

    ``every_s`` is its interval in seconds; ``incident`` the stem of its page in
    ``docs/incidents/``; ``mode`` what it does unless the settings say otherwise; ``source`` where
    it is declared (``file:line``).
    """

    name: str
    check: Check
    remedy: Remedy | None
    every_s: float
    incident: str
    mode: GuardMode
    description: str
    source: str


def guard(
    *, every_s: float, incident: str, remedy: Remedy | None = None, mode: GuardMode = "observe"
) -> Callable[[C], C]:
    """Declare an async function as a guard's check. Its name is the guard's and its module's.

    Args:
        every_s: seconds between two checks.
        incident: stem of the page in ``docs/incidents/`` that tells what happened.
        remedy: what repairs it, if anything does.
        mode: ``repair`` only where a repair surprises nobody.

    Raises:
        DeclarationError: at once, with the file and line, when the function can not be a guard.
    """

    def declare(function: C) -> C:
        spec = _build_spec(function, every_s, incident, remedy, mode)
        setattr(function, _ATTRIBUTE, spec)
        function.__globals__.setdefault(GUARD_SPECS, []).append(spec)
        return function

    return declare


def _build_spec(
    function: Check, every_s: float, incident: str, remedy: Remedy | None, mode: GuardMode
) -> GuardSpec:
    name = getattr(function, "__name__", "?")
    code = getattr(function, "__code__", None)
    source = f"{code.co_filename}:{code.co_firstlineno}" if code else "?"

    def refuse(why: str, hint: str) -> DeclarationError:
        return DeclarationError(f"{source}: guard {name!r} {why}.", hint=hint)

    _check_functions(function, remedy, name, refuse)
    if not every_s > 0:
        raise refuse(f"is to run every {every_s} s", "Give seconds above 0.")
    if not _SLUG.fullmatch(incident):
        raise refuse(
            f"names the incident {incident!r}", "Give the stem of a page in docs/incidents/."
        )
    if mode not in get_args(GuardMode):
        raise refuse(f"has no mode {mode!r}", "Use observe or repair.")
    if mode == "repair" and remedy is None:
        raise refuse("is to repair and has no remedy", "Give it a remedy, or mode='observe'.")
    description = inspect.getdoc(function)
    if not description:
        raise refuse("has no docstring", "Say in a sentence what it finds.")
    return GuardSpec(
        name=name,
        check=function,
        remedy=remedy,
        every_s=every_s,
        incident=incident,
        mode=mode,
        description=description,
        source=source,
    )


def _check_functions(
    function: Check,
    remedy: Remedy | None,
    name: str,
    refuse: Callable[[str, str], DeclarationError],
) -> None:
    if not _NAME.fullmatch(name):
        raise refuse("needs a name of lower-case letters, digits and _", "Rename the function.")
    if function.__module__.rpartition(".")[2] != name:
        raise refuse(
            "is not named as its file", f"Move it to guards/{name}.py; one guard is one module."
        )
    for part, what in ((function, "is"), (remedy, "has a remedy that is")):
        if part is not None and not inspect.iscoroutinefunction(part):
            raise refuse(f"{what} not an async function", "Declare it with `async def`.")


def guard_spec_of(check: Check) -> GuardSpec:
    """Return the spec that ``@guard`` attached to the check."""
    spec = getattr(check, _ATTRIBUTE, None)
    if not isinstance(spec, GuardSpec):
        raise DeclarationError(f"{check!r} is not a guard.", hint="Decorate it with @guard.")
    return spec
