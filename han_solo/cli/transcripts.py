"""``han-solo transcripts``: bring them in, see what is there, search them."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from . import run
from .services import open_database

app = typer.Typer(
    name="transcripts",
    help="Claude Code's transcripts: bring them in, see what is there, search.",
    no_args_is_help=True,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
@run.command
async def sync(*, as_json: AsJson = False) -> int:
    """Bring what is new in this machine's transcripts into the memory."""
    from ..transcripts.ingest import sync as sync_transcripts

    settings = run.settings()
    async with open_database(settings) as db:
        report = await sync_transcripts(
            db, settings.transcripts, excluded=settings.transcripts_excluded
        )
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=2))
        return 0
    out = run.out()
    out.print(
        f"{report.files:,} files, {report.read:,} with something new: {report.records:,} records, "
        f"{report.new:,} of them not known yet, {report.bytes / 1e6:,.1f} MB in "
        f"{report.duration_s:.1f} s.",
        soft_wrap=True,
    )
    if report.redacted:
        out.print(f"{report.redacted:,} secrets of known shapes were taken out.")
    for kind, count in sorted(report.damage.items()):
        out.print(f"  damage: {kind.replace('_', ' ')} {count:,}")
    if report.quarantined:
        out.print(
            f"{report.quarantined:,} lines could not be taken; their bytes and places are in "
            "memory.transcript_damage.",
            soft_wrap=True,
        )
    if not report.files:
        where = ", ".join(map(str, settings.transcripts))
        out.print(f"There are no transcripts in {where} (HAN_SOLO_TRANSCRIPTS).", soft_wrap=True)
    return run.EXIT_FAILED if report.unreadable else 0


@app.command()
@run.command
async def status(*, as_json: AsJson = False) -> None:
    """Show what is there: files, sessions, records by kind, damage, tokens."""
    from ..transcripts.service import Transcripts

    settings = run.settings()
    async with open_database(settings) as db:
        found = await Transcripts(db).describe()
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(found), default=str, indent=2))
        return
    out = run.out()
    if not found.files:
        out.print("Nothing was read yet: han-solo transcripts sync")
        return
    last = found.last_read_at.astimezone(settings.zone) if found.last_read_at else None
    out.print(
        f"{found.files:,} files, {found.sessions:,} sessions; last read "
        f"{last:%Y-%m-%d %H:%M}; {found.input_tokens:,} tokens in, {found.output_tokens:,} out.",
        soft_wrap=True,
    )
    for kind, count in found.kinds.items():
        out.print(f"  {kind.replace('_', ' '):<16} {count:>10,}")
    for kind, count in found.damage.items():
        out.print(f"  damage: {kind.replace('_', ' '):<8} {count:>10,}")


@app.command()
@run.command
async def search(
    query: Annotated[str, typer.Argument(help='Words; "a phrase", or, and -without work.')],
    *,
    days: Annotated[int, typer.Option(min=1, help="How many days back.")] = 45,
    everything: Annotated[bool, typer.Option("--all", help="However old.")] = False,
    project: Annotated[str | None, typer.Option(help="Part of the project's path.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Hits, at most.")] = 20,
    as_json: AsJson = False,
) -> int:
    """Find what was said. Exit code 0: found; 1: nothing."""
    from rich.table import Table
    from rich.text import Text

    from ..transcripts.service import Transcripts

    settings = run.settings()
    async with open_database(settings) as db:
        hits = await Transcripts(db).search(
            query, days=None if everything else days, project=project, limit=limit
        )
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(hit) for hit in hits], default=str, indent=2))
        return 0 if hits else run.EXIT_FAILED
    if not hits:
        span = "" if everything else f" in the last {days} days (--all looks at everything)"
        run.out().print(f"Nothing was found{span}.")
        return run.EXIT_FAILED
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("when", "project", "session", "who", "said"):
        table.add_column(name, overflow="fold", ratio=4 if name == "said" else None)
    for hit in hits:
        when = hit.at.astimezone(settings.zone).strftime("%Y-%m-%d %H:%M") if hit.at else "?"
        name = hit.title or hit.session_id[:8]
        said = " ".join(hit.snippet.split())
        table.add_row(when, Text(hit.project), Text(name), hit.kind, Text(said))
    run.out().print(table)
    return 0
