"""Declarations: ``@tool``, ``@guard`` and ``@job`` as frozen specs.

Declaring has no effect on the world: the decorator attaches a spec to the function, returns the
function, and notes the spec in its module. ``han_solo.loader`` collects them into a registry, and
everything else is derived from that.
"""

from .guard import GUARD_SPECS, Finding, GuardMode, GuardSpec, Severity, guard, guard_spec_of
from .job import JOB_SPECS, Daily, Evidence, Hourly, JobSpec, When, job, job_spec_of
from .letta_names import LETTA_BUILTINS, LETTA_MEMORY_BUILTINS
from .tool import MAX_NAME_CHARS, MODULE_SPECS, ContextLevel, ToolSpec, spec_of, tool

__all__ = [
    "GUARD_SPECS",
    "JOB_SPECS",
    "LETTA_BUILTINS",
    "LETTA_MEMORY_BUILTINS",
    "MAX_NAME_CHARS",
    "MODULE_SPECS",
    "ContextLevel",
    "Daily",
    "Evidence",
    "Finding",
    "GuardMode",
    "GuardSpec",
    "Hourly",
    "JobSpec",
    "Severity",
    "ToolSpec",
    "When",
    "guard",
    "guard_spec_of",
    "job",
    "job_spec_of",
    "spec_of",
    "tool",
]
