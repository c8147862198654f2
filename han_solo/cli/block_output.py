"""What the block commands put on stdout: JSON, texts, and the outcome of a write."""

from __future__ import annotations

import json
import sys

import typer

from ..blocks.model import BlockWrite
from . import block_json, block_view, run
from .block_text import say, visible


def show_write(written: BlockWrite, *, as_json: bool) -> None:
    """Say what came of a write, and what was found on the way."""
    if as_json:
        print_json(block_json.of_write(written))
        return
    console = run.out()
    for line in block_view.build_events(written.label, written.events):
        say(console, line)
    size = f"{written.length:,} of {written.limit:,} characters"
    name = visible(written.label)
    if written.changed:
        say(console, f"{name} is at version {written.version}, {size}, read back.")
    else:
        say(console, f"Nothing was changed: {name} holds that, version {written.version}, {size}.")


def print_text(value: str) -> None:
    """Print a text: as it is into a pipe, without what a terminal would act upon on one."""
    if run.out().is_terminal:
        value = visible(value)
    typer.echo(value, nl=not value.endswith("\n"))


def print_raw(value: str) -> None:
    """Print a text to the byte."""
    sys.stdout.buffer.write(value.encode("utf-8"))
    sys.stdout.buffer.flush()


def print_json(body: object) -> None:
    print(json.dumps(body, indent=2, ensure_ascii=False))
