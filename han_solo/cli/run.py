"""What every command shares: settings, logging, one event loop, and errors as one sentence.

A ``HanSoloError`` becomes one sentence and its hint on stderr and the error's exit code; a bug
keeps its traceback. Exit codes: 0 done, 1 a check failed, 2 can not be done as asked, 3 drift or
findings.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console

from .. import logs
from ..errors import HanSoloError
from ..settings import Settings, load_settings

P = ParamSpec("P")
T = TypeVar("T")

EXIT_FAILED = 1
EXIT_REFUSED = 2
EXIT_DRIFT = 3


def out() -> Console:
    """Return the console of stdout; made late, so that a test's capture sees it."""
    return Console(highlight=False)


def err() -> Console:
    """Return the console of stderr."""
    return Console(stderr=True, highlight=False)


def settings() -> Settings:
    """Read the settings and set up logging from them."""
    found = load_settings()
    logs.configure(level=found.log_level, fmt=found.log_format)
    return found


def command(function: Callable[P, Coroutine[Any, Any, int | None]]) -> Callable[P, None]:
    """Make a typer command of an async function that returns an exit code or None."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        raise typer.Exit(run(function(*args, **kwargs)))

    return wrapper


def run(coroutine: Coroutine[Any, Any, int | None]) -> int:
    """Run it and return the exit code."""
    try:
        return asyncio.run(coroutine) or 0
    except HanSoloError as error:
        show_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        err().print("Stopped; nothing was lost.", style="yellow")
        return 130


def show_error(error: HanSoloError) -> None:
    """Print the sentence, and the hint on a line of its own, without markup or wrapping."""
    console = err()
    console.print(f"[bold red]error:[/] {_plain(error.message)}", soft_wrap=True)
    if error.hint:
        console.print(f"       {_plain(error.hint)}", soft_wrap=True)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


def is_terminal() -> bool:
    """Say whether a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()
