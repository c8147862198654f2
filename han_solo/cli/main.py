"""``han-solo``: the one command of operators. Each family is a module of this package."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Annotated, Final

import typer

from .run import start

app = typer.Typer(
    name="han-solo",
    help="The caretaker of a long-lived, self-hosted Letta agent.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_FAMILIES: Final = (
    "backups",
    "blocks",
    "embed",
    "guards",
    "jobs",
    "launchd",
    "memory",
    "systemd",
    "tokens",
    "tools",
    "transcripts",
    "providers",
    "letta",
)
"""Modules whose ``app`` is a group of commands."""

_MORE_OF_FAMILIES: Final = ("memory_files",)
"""Modules that add commands to the ``app`` of a family."""

_COMMANDS: Final = (
    "up",
    "status",
    "doctor",
    "sync",
    "switch_model",
    "bridge",
    "daemon",
    "adopt",
    "reference",
)
"""Modules that add commands of their own: each has ``add_to(app)``."""


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if version:
        typer.echo(importlib.metadata.version("han-solo"))
        raise typer.Exit


def build_app() -> typer.Typer:
    """Add every family; a module is imported here and imports its heavy parts when it runs."""
    for name in _COMMANDS:
        importlib.import_module(f"{__package__}.{name}").add_to(app)
    for name in _MORE_OF_FAMILIES:
        importlib.import_module(f"{__package__}.{name}")
    for name in _FAMILIES:
        app.add_typer(importlib.import_module(f"{__package__}.{name}").app, name=name)
    return app


def main() -> None:
    """Run the command line."""
    start(build_app())
