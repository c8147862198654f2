"""``han-solo tools``: what is declared, for whom, and how a caller sees it. Needs no server."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .run import command, out, settings

if TYPE_CHECKING:
    from ..declare import ToolSpec
    from ..registry import Registry

app = typer.Typer(help="The declared tools.", invoke_without_command=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def list_tools(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the declared tools, yours among them: for whom, effect, scope and family."""
    if context.invoked_subcommand is None:
        _list(as_json=as_json)


@command
async def _list(*, as_json: bool) -> None:
    from rich.table import Table

    registry = _load()
    if as_json:
        typer.echo(json.dumps([_to_json(spec) for spec in registry], indent=2))
        return
    table = Table(title=f"{len(registry)} tools", title_justify="left", box=None, pad_edge=False)
    for title in ("tool", "shown to", "effect", "scope", "family"):
        table.add_column(title, no_wrap=title == "tool")
    for spec in registry:
        table.add_row(spec.name, _shown_to(spec), spec.effect, spec.scope, spec.family)
    out().print(table)
    out().print("One tool in full: `han-solo tools show NAME`.", style="dim")


@app.command("show")
@command
async def show(
    name: Annotated[str, typer.Argument(help="The tool's name.")], as_json: JsonOption = False
) -> None:
    """Print one tool as its callers see it: description and schema."""
    from ..bridge.projection import project
    from ..errors import UsageError

    registry = _load()
    spec = registry.get(name)
    if spec is None:
        raise UsageError(
            f"There is no tool {name!r}.", hint=_similar(name, [tool.name for tool in registry])
        )
    listed = project(spec)
    if as_json:
        typer.echo(json.dumps(_to_json(spec) | dataclasses.asdict(listed), indent=2))
        return
    console = out()
    console.print(f"[bold]{name}[/]: {spec.effect}, shown to {_shown_to(spec)}, scope {spec.scope}")
    console.print(f"{spec.source}\n", style="dim", markup=False, soft_wrap=True)
    console.print(listed.description, markup=False, soft_wrap=True)
    console.print()
    console.print_json(json.dumps(listed.input_schema))


def _load() -> Registry:
    from ..loader import load_registry

    return load_registry(settings().extensions)


def _shown_to(spec: ToolSpec) -> str:
    """Say in words who is shown it: its audience and the more trusted ones."""
    from ..principals import AUDIENCES, is_shown

    return ", ".join(kind for kind in AUDIENCES if is_shown(spec.audience, kind))


def _to_json(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "audience": spec.audience,
        "effect": spec.effect,
        "scope": spec.scope,
        "context": spec.context,
        "family": spec.family,
        "source": spec.source,
    }


def _similar(name: str, names: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, names)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    return "`han-solo tools` lists them."
