"""Progress of what takes long, drawn on stderr: stdout is for what a script reads."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from . import run

if TYPE_CHECKING:
    from ..embedded.progress import Progress


def open_progress() -> AbstractContextManager[Progress]:
    """Draw bars on a terminal, and a line now and then elsewhere."""
    from ..embedded.progress import LineProgress, TerminalProgress

    console = run.err()
    if console.is_terminal and os.environ.get("TERM") != "dumb":
        return TerminalProgress(console)
    return LineProgress(sys.stderr)
