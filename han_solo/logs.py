"""Logging: structlog, JSON unless a terminal, to stderr so that stdout stays the command's own.

Event names are constant, dotted and past tense; variables are keys. Memory text, message bodies,
tokens and DSNs are never logged; ``_redact`` is the net below that rule, not a licence.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Literal

import structlog
from structlog.typing import EventDict, WrappedLogger

_SECRET_KEYS = re.compile(r"(password|secret|token|api_key|authorization|dsn)$", re.IGNORECASE)
_SECRET_VALUES = re.compile(r"hs_[0-9a-z]+_[A-Za-z0-9_-]{16,}|(?<=://)[^/@\s:]+:[^/@\s]+(?=@)")


def _redact(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if _SECRET_KEYS.search(key) and value is not None:
            event[key] = "[redacted]"
        elif isinstance(value, str):
            event[key] = _SECRET_VALUES.sub("[redacted]", value)
    return event


def configure(*, level: str = "info", fmt: Literal["auto", "json", "console"] = "auto") -> None:
    """Set up structlog and route the standard library's records through it.

    Args:
        level: debug, info, warning or error.
        fmt: auto is console on a terminal and JSON elsewhere.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    console = fmt == "console" or (fmt == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,  # before _redact: a traceback may quote a DSN
            _redact,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        # Looked up at each line: whoever replaces stderr, as a test does, gets the lines.
        logger_factory=lambda *_names: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=max(number, logging.WARNING), stream=sys.stderr, force=True)


def get(name: str) -> structlog.typing.FilteringBoundLogger:
    """Return a logger bound to the component's name."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(component=name)
    return logger
