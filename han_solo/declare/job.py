"""``@job``: an async function becomes a frozen ``JobSpec``.

From it come the schedule entry, the launchd plist, the systemd timer, the command and the deadline
after which the job counts as overdue.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from ..errors import DeclarationError

JOB_SPECS: Final = "__han_solo_jobs__"
"""The list of a module's jobs."""

MAX_TIMEOUT_S: Final = 24 * 3600

_ATTRIBUTE: Final = "__han_solo_job__"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,47}")
_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")

Evidence = Mapping[str, object]
"""What a job can show for itself: figures, ids and versions, as JSON values; never memory text."""

JobFunction = Callable[..., Awaitable[Evidence]]
"""Takes a ``JobContext``, which lies in a layer above."""

F = TypeVar("F", bound=JobFunction)


@dataclass(frozen=True, slots=True)
class Daily:
    """Once a day, at a local time (``HH:MM``) of the zone in the settings."""

    at: str

    @property
    def hour(self) -> int:
        return int(self.at[:2])

    @property
    def minute(self) -> int:
        return int(self.at[3:])


@dataclass(frozen=True, slots=True)
class Hourly:
    """Once an hour, at that minute; counted in UTC, where no hour is missing or doubled."""

    minute: int = 0


When = Daily | Hourly


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One job, as declared.

    ``timeout_s`` is the most that one run may take; ``overdue_s`` how long after its due time a
    success may be missing before that is a finding; ``is_repeatable`` says whether running it again
    after a failure can do no harm.
    """

    name: str
    function: JobFunction
    when: When
    timeout_s: float
    overdue_s: float
    is_repeatable: bool
    description: str
    source: str


def job(
    *, when: When, timeout_s: float, repeatable: bool = False, overdue_s: float | None = None
) -> Callable[[F], F]:
    """Declare an async function as a job. Its name is the job's and its module's.

    Args:
        when: when it is due.
        timeout_s: seconds that one run may take; it is cancelled then.
        repeatable: whether it may run again by itself after a failure. One that sends a message
            to the agent may not, unless the failure says that nothing was delivered.
        overdue_s: seconds after the due time without a success that are a finding; by default
            twice the timeout, and at least one hour.

    Raises:
        DeclarationError: at once, with the file and line, when the function can not be a job.
    """

    def declare(function: F) -> F:
        spec = _build_spec(function, when, timeout_s, repeatable, overdue_s)
        setattr(function, _ATTRIBUTE, spec)
        function.__globals__.setdefault(JOB_SPECS, []).append(spec)
        return function

    return declare


def _build_spec(
    function: JobFunction,
    when: When,
    timeout_s: float,
    repeatable: bool,
    overdue_s: float | None,
) -> JobSpec:
    name = getattr(function, "__name__", "?")
    code = getattr(function, "__code__", None)
    source = f"{code.co_filename}:{code.co_firstlineno}" if code else "?"

    def refuse(why: str, hint: str) -> DeclarationError:
        return DeclarationError(f"{source}: job {name!r} {why}.", hint=hint)

    if not inspect.iscoroutinefunction(function):
        raise refuse("is not an async function", "Declare it with `async def`.")
    if not _NAME.fullmatch(name):
        raise refuse("needs a name of lower-case letters, digits and _", "Rename the function.")
    if function.__module__.rpartition(".")[2] != name:
        raise refuse(
            "is not named as its file", f"Move it to jobs/{name}.py; one job is one module."
        )
    if isinstance(when, Daily) and not _TIME.fullmatch(when.at):
        raise refuse(f"is due at {when.at!r}", "Give HH:MM, 00:00 to 23:59.")
    if isinstance(when, Hourly) and when.minute not in range(60):
        raise refuse(f"is due at minute {when.minute}", "Give 0 to 59.")
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise refuse(f"may take {timeout_s} s", f"Give seconds, above 0 and up to {MAX_TIMEOUT_S}.")
    description = inspect.getdoc(function)
    if not description:
        raise refuse("has no docstring", "Say in a sentence what it does.")
    return JobSpec(
        name=name,
        function=function,
        when=when,
        timeout_s=timeout_s,
        overdue_s=max(2 * timeout_s, 3600) if overdue_s is None else overdue_s,
        is_repeatable=repeatable,
        description=description,
        source=source,
    )


def job_spec_of(function: JobFunction) -> JobSpec:
    """Return the spec that ``@job`` attached to the function."""
    spec = getattr(function, _ATTRIBUTE, None)
    if not isinstance(spec, JobSpec):
        raise DeclarationError(f"{function!r} is not a job.", hint="Decorate it with @job.")
    return spec
