"""han-solo: the caretaker of a long-lived, self-hosted Letta agent.

This is the front that extensions (``tools/``, ``guards/``, ``jobs/``) import from; the rest of the
package is the engine's own.
"""

from .context import BlockContext, MemoryContext, OperatorContext
from .declare import Daily, Evidence, Finding, Hourly, guard, job, tool
from .errors import HanSoloError
from .guard_context import CheckContext, RemedyContext
from .job_context import JobContext
from .principals import Principal

__all__ = [
    "BlockContext",
    "CheckContext",
    "Daily",
    "Evidence",
    "Finding",
    "HanSoloError",
    "Hourly",
    "JobContext",
    "MemoryContext",
    "OperatorContext",
    "Principal",
    "RemedyContext",
    "guard",
    "job",
    "tool",
]
