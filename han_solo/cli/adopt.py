"""``han-solo adopt``: bring in an agent that Letta has already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from . import run
from .block_text import say, visible
from .long_steps import open_progress
from .memory import AsJson, print_json

if TYPE_CHECKING:
    from .adopt_session import Adopted, Adoption

UNUSABLE_SHOWN = 5


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("adopt")(adopt)


@run.command
async def adopt(
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="AGENT", help="Its id or name in Letta; the one looked after, if left out."
        ),
    ] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what there is; write nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> int:
    """Bring in an agent that Letta has: its archival memory, its blocks, and what tools it has.

    Its archival passages are imported, so that search finds them; what each of its core blocks
    holds is kept as version 1; its tools are listed beside those that it lacks. Letta is only read.
    A second run adds what is new since.
    """
    from .adopt_session import open_adoption

    settings = run.settings()
    async with open_adoption(settings) as session:
        if as_json or not run.err().is_terminal:
            adoption = await session.plan(agent)
        else:
            with run.err().status("Reading what the agent holds"):
                adoption = await session.plan(agent)
        if not as_json:
            _show(adoption)
        if dry_run:
            if as_json:
                print_json(_as_json(adoption))
            return 0
        if not adoption.new and not adoption.new_blocks:
            if as_json:
                print_json(_as_json(adoption))
            else:
                say(run.out(), "There is nothing new to bring in.")
            return 0
        if not _agree(yes=yes, as_json=as_json):
            return run.EXIT_REFUSED
        with open_progress() as progress:
            wrote = progress.step("Passages", len(adoption.new) or None)
            embedded = progress.step("Vectors")
            steps = {"written": wrote, "embedded": embedded}
            adopted = await session.carry_out(
                adoption, lambda what, count: steps[what].advance(count)
            )
            wrote.done(f"{len(adopted.imported.passage_ids):,} written")
            embedded.done(adopted.imported.pending or "")
    if as_json:
        print_json(_as_json(adoption, adopted))
    else:
        _say_adopted(adoption, adopted)
    return 0


def _agree(*, yes: bool, as_json: bool) -> bool:
    from ..errors import UsageError

    if yes:
        return True
    if as_json or not run.is_terminal():
        raise UsageError(
            "Nobody can be asked here (no terminal, or --json), so nothing was written.",
            hint="Bring it in with --yes, or only look with --dry-run.",
        )
    return typer.confirm("Bring it in?", default=False)


def _show(adoption: Adoption) -> None:
    console, agent, tools = run.out(), adoption.agent, adoption.tools
    say(console, f"{visible(agent.name)}  {agent.id}", style="bold")
    rows = [
        (
            "passages",
            f"{len(adoption.new):,} to import, {adoption.known:,} here already"
            + f", {len(adoption.unusable):,} can not be kept" * bool(adoption.unusable),
        ),
        ("blocks", _list("to keep as version 1", adoption.new_blocks)),
    ]
    if adoption.known_blocks:
        rows.append(("", _list("with versions already", adoption.known_blocks)))
    rows.append(("tools", _list("of han-solo", tools.ours)))
    if tools.missing:
        rows.append(("", _list("of han-solo not there", tools.missing)))
    if tools.lettas:
        rows.append(("", _list("of Letta", tools.lettas)))
    if tools.others:
        rows.append(("", _list("others", tools.others)))
    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        table.add_row(Text(name, "dim"), Text(value))
    console.print(table)
    for passage_id, why in list(adoption.unusable.items())[:UNUSABLE_SHOWN]:
        say(run.err(), f"{passage_id} is left out: {why}", style="yellow")


def _list(what: str, names: tuple[str, ...]) -> str:
    return f"{len(names)} {what}" + (f": {', '.join(map(visible, names))}" if names else "")


def _say_adopted(adoption: Adoption, adopted: Adopted) -> None:
    passages, blocks = len(adopted.imported.passage_ids), len(adopted.versions)
    say(
        run.out(),
        f"{passages:,} passage{'' if passages == 1 else 's'} imported, "
        f"{blocks} block{'' if blocks == 1 else 's'} recorded. Letta is as it was.",
    )
    if adopted.imported.pending:
        say(
            run.err(),
            "The passages are found by their words alone until `han-solo embed fill` can make "
            f"their vectors: {adopted.imported.pending}",
            style="yellow",
        )
    if not adoption.is_managed:
        say(
            run.out(),
            f"To have it looked after: HAN_SOLO_AGENT_ID={adoption.agent.id} han-solo up",
        )
    elif adoption.tools.missing:
        say(run.out(), "To give it the tools that it lacks: han-solo sync-tools")


def _as_json(adoption: Adoption, adopted: Adopted | None = None) -> dict[str, Any]:
    tools = adoption.tools
    return {
        "agent": {
            "id": adoption.agent.id,
            "name": adoption.agent.name,
            "is_managed": adoption.is_managed,
        },
        "passages": {
            "new": len(adoption.new),
            "known": adoption.known,
            "unusable": adoption.unusable,
            "imported": len(adopted.imported.passage_ids) if adopted else 0,
            "pending": adopted.imported.pending if adopted else None,
        },
        "blocks": {
            "new": list(adoption.new_blocks),
            "known": list(adoption.known_blocks),
            "recorded": adopted.versions if adopted else {},
        },
        "tools": {
            "ours": list(tools.ours),
            "missing": list(tools.missing),
            "lettas": list(tools.lettas),
            "others": list(tools.others),
        },
    }
