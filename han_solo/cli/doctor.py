"""``han-solo doctor``: what is wrong, why, and the command that mends it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from .run import EXIT_FAILED, command, out, settings
from .status import MARKS, plain

if TYPE_CHECKING:
    from .survey_model import Part


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


@command
async def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Say what is wrong, why, and the command that mends it; changes nothing.

    Exit codes: 0 nothing is wrong, 1 something is.
    """
    from ..connections import Connections
    from .doctor_checks import examine
    from .survey import survey

    connections = Connections(settings())
    found = await survey(connections)
    parts = [*found.parts, *examine(connections, found)]
    wrong = [part for part in parts if part.level != "ok"]
    is_bad = any(part.level in {"failed", "unknown"} for part in parts)
    if as_json:
        body = {"well": not is_bad, "parts": [part.to_json() for part in parts]}
        typer.echo(json.dumps(body, indent=2))
        return EXIT_FAILED if is_bad else 0
    console = out()
    for part in parts:
        if part.level == "ok":
            console.print(
                f"{MARKS['ok']} {part.name}: {plain(part.detail)}",
                soft_wrap=not console.is_terminal,
            )
    for part in wrong:
        _show(part)
    if not wrong:
        console.print("\nNothing is wrong.")
    return EXIT_FAILED if is_bad else 0


def _show(part: Part) -> None:
    console = out()
    where = f" ({plain(part.address)})" if part.address else ""
    console.print(
        f"\n{MARKS[part.level]} [bold]{part.name}[/]{where}", soft_wrap=not console.is_terminal
    )
    console.print(f"  {plain(part.detail)}", soft_wrap=not console.is_terminal)
    if part.fix:
        console.print(f"  → {plain(part.fix)}", soft_wrap=not console.is_terminal)
