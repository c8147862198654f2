"""``han-solo status``: what runs where, and whether it is well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Final

import typer

from .run import EXIT_FAILED, command, out, settings

if TYPE_CHECKING:
    from rich.table import Table

    from .survey_model import Survey

MARKS: Final = {
    "ok": "[green]✓[/]",
    "warning": "[yellow]![/]",
    "failed": "[red]✗[/]",
    "unknown": "[dim]?[/]",
}


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("status")(status)


@command
async def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for monitors.")] = False,
) -> int:
    """Show what runs where, and whether it is well; changes nothing.

    Exit codes: 0 all is well, 1 something is not.
    """
    from ..connections import Connections
    from .survey import survey

    found = await survey(Connections(settings()))
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2))
    else:
        out().print(build_table(found))
        if not found.is_well:
            out().print("What to do about it: [bold]han-solo doctor[/]")
    return 0 if found.is_well else EXIT_FAILED


def build_table(found: Survey) -> Table:
    """Return the table of the parts."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for part in found.parts:
        where = f"\n[dim]{plain(part.address)}[/]" if part.address else ""
        table.add_row(MARKS[part.level], part.name, f"{plain(part.detail)}{where}")
    return table


def plain(text: str) -> str:
    """Return text with nothing in it that rich would read as markup."""
    return text.replace("[", r"\[")
