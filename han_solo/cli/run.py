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
from ..settings import Settings
from ..settings_loading import load_settings

P = ParamSpec("P")
T = TypeVar("T")

EXIT_FAILED = 1
EXIT_REFUSED = 2
EXIT_DRIFT = 3
EXIT_TERMINATED = 143
"""128 and the number of SIGTERM, as a shell would say it."""


def out() -> Console:
    """Return the console of stdout; made late, so that a test's capture sees it."""
    return Console(highlight=False)


def err() -> Console:
    """Return the console of stderr."""
    return Console(stderr=True, highlight=False)


def settings(*, is_service: bool = False) -> Settings:
    """Read the settings and set up logging from them.

    A person at a terminal is told what happened by the command itself, so its log lines below a
    warning are left out unless ``HAN_SOLO_LOG_LEVEL`` asks for them.
    """
    found = load_settings()
    is_asked_for = is_service or "log_level" in found.model_fields_set
    logs.configure(level=found.log_level if is_asked_for else "warning", fmt=found.log_format)
    return found


def start(app: typer.Typer) -> None:
    """Run a command line; what escapes from building it is one sentence too."""
    try:
        command_line = typer.main.get_command(app)
        _name_no_type_of_flags(command_line)
        command_line()
    except HanSoloError as error:
        show_error(error)
        sys.exit(error.exit_code)


def _name_no_type_of_flags(command_line: Any) -> None:
    """Leave the word ``<bool>`` out of the help: a flag takes no value that it could name."""
    for option in command_line.params:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for sub in getattr(command_line, "commands", {}).values():
        _name_no_type_of_flags(sub)


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


def finish(action: Callable[[], int]) -> None:
    """Run a command that needs no event loop, and end with its exit code.

    Raises:
        typer.Exit: always.
    """
    try:
        code = action()
    except HanSoloError as error:
        show_error(error)
        code = error.exit_code
    raise typer.Exit(code)


def show_error(error: HanSoloError) -> None:
    """Print the sentence, and the hint on a line of its own, without markup or wrapping."""
    console = err()
    whole = not console.is_terminal  # a log or a pipe gets a sentence a line
    console.print(f"[bold red]error:[/] {_plain(error.message)}", soft_wrap=whole)
    if error.hint:
        console.print(f"       {_plain(error.hint)}", soft_wrap=whole)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


def is_terminal() -> bool:
    """Say whether a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()
