"""A log file for processes that nobody else keeps one for, such as those that launchd starts.

launchd appends to one file for ever. So a job takes over the file that launchd opened for it: one
that has grown is set aside first, and what the process prints, a traceback of the interpreter's
too, goes into the new one.
"""

from __future__ import annotations

import os
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from .errors import SettingsError

MAX_BYTES: Final = 1_000_000
"""Of a log that is still written to: months of one job's lines."""

KEPT: Final = 5
"""Files that were set aside and are kept."""


def write_output_to(path: Path, *, max_bytes: int = MAX_BYTES) -> None:
    """Have this process' output, both streams, go to a 0600 file, rotated if it has grown.

    Raises:
        SettingsError: it can not be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and path.stat().st_size > max_bytes:
            # Only renames: it opens nothing before a line is written through it, and none is.
            RotatingFileHandler(path, backupCount=KEPT, delay=True, encoding="utf-8").doRollover()
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        raise SettingsError(
            f"The log file {path} can not be written: {error.strerror}.",
            hint="Name a file in a directory that you may write.",
        ) from error
    sys.stdout.flush()
    sys.stderr.flush()
    for descriptor in (1, 2):
        os.dup2(handle, descriptor)
    os.close(handle)
