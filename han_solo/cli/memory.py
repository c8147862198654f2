"""``han-solo memory``: what is remembered in prose, for a person at a terminal."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from . import run
from .block_session import user_name
from .block_text import decode
from .services import open_database

if TYPE_CHECKING:
    from ..memory.passages import Passages
    from ..principals import Principal
    from ..settings import Settings

app = typer.Typer(
    name="memory",
    help="What is remembered in prose: search, add, show, look through it, import, export.",
    no_args_is_help=True,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Origin = Literal["user_stated", "inferred", "external"]
Tier = Literal["standard", "foundational"]


@app.command()
@run.command
async def search(
    queries: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="Several are fused into one list.")
    ],
    *,
    scope: Annotated[list[str] | None, typer.Option(help="Only in this area.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag; all of them.")] = None,
    entity: Annotated[
        list[str] | None, typer.Option(help="Only what names this person, place, file or ticket.")
    ] = None,
    author: Annotated[list[str] | None, typer.Option(help="Only this author's words.")] = None,
    origin: Annotated[Origin | None, typer.Option(help="Only what came so.")] = None,
    tier: Annotated[Tier | None, typer.Option(help="Only this tier.")] = None,
    thread: Annotated[str | None, typer.Option(help="Only this thread.")] = None,
    since: Annotated[
        str | None, typer.Option("--from", help="From this time on, ISO 8601.")
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help="Before this time, ISO 8601.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Also what was put away.")] = False,
    limit: Annotated[int, typer.Option("-n", "--limit", help="Passages, 1 to 100.")] = 10,
    as_json: AsJson = False,
) -> int:
    """Search by words and by meaning. Exit code 0: found; 1: nothing."""
    from ..memory.passage_model import parse_time
    from ..memory.search_model import Filters
    from .memory_view import show_found

    settings = run.settings()
    filters = Filters(
        scopes=tuple(scope or ()),
        tags=tuple(tag or ()),
        entities=tuple(entity or ()),
        authors=tuple(author or ()),
        origins=() if origin is None else (origin,),
        tier=tier,
        thread=thread,
        happened_from=parse_time(since, "--from"),
        happened_to=parse_time(until, "--to"),
        include_archived=archived,
    )
    async with open_memory(settings) as (passages, principal):
        found = await passages.search(principal, queries, filters=filters, limit=limit)
    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        show_found(found, settings.zone)
    return 0 if found.hits else run.EXIT_FAILED


@app.command()
@run.command
async def add(
    text: Annotated[
        str | None, typer.Argument(help="What to remember; from stdin if left out or `-`.")
    ] = None,
    *,
    title: Annotated[str, typer.Option(help="A short title.")] = "",
    author: Annotated[str | None, typer.Option(help="Whose words it is; you, if left out.")] = None,
    origin: Annotated[Origin, typer.Option(help="How it came.")] = "user_stated",
    tag: Annotated[list[str] | None, typer.Option(help="A word to filter by; repeatable.")] = None,
    scope: Annotated[str, typer.Option(help="The area it belongs to.")] = "general",
    thread: Annotated[
        str | None, typer.Option(help="What it is a part of, such as a session.")
    ] = None,
    source: Annotated[str, typer.Option(help="Where it is from: a file, a URL.")] = "",
    importance: Annotated[float, typer.Option(help="0 to 1.")] = 0.5,
    happened: Annotated[
        str | None, typer.Option("--at", help="When it was, ISO 8601; now if left out.")
    ] = None,
    foundational: Annotated[
        bool, typer.Option("--foundational", help="Never to fade or be put away.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remember something."""
    from ..memory.passage_model import Draft, parse_time
    from .memory_view import show_written

    settings = run.settings()
    draft = Draft(
        text=_read(text),
        title=title,
        author=user_name() if author is None else author,
        origin=origin,
        source=source,
        thread=thread,
        scope=scope,
        tags=tuple(tag or ()),
        tier="foundational" if foundational else "standard",
        importance=importance,
        happened_at=parse_time(happened, "--at"),
    )
    draft.check()  # before anything is opened: a mistake is told at once
    async with open_memory(settings) as (passages, principal):
        written = await passages.insert(principal, draft)
    if as_json:
        print_json(dataclasses.asdict(written))
    else:
        show_written(written)


@app.command()
@run.command
async def show(
    passage_id: Annotated[int, typer.Argument(metavar="ID", help="The passage's id.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Show one passage whole, with its notes and links, and how often it was found."""
    from .memory_view import show_whole

    settings = run.settings()
    async with open_memory(settings) as (passages, principal):
        whole = await passages.get(principal, passage_id)
    if as_json:
        print_json(dataclasses.asdict(whole))
    else:
        show_whole(whole, settings.zone)


@app.command()
@run.command
async def mri(
    *,
    days: Annotated[int, typer.Option(help="How many days back.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Look for dead, hot and blind spots: what is not found, and what finds nothing."""
    from .mri_view import show_mri

    settings = run.settings()
    async with open_memory(settings) as (passages, _principal):
        found = await passages.mri(days=days, zone=settings.zone.key)
    if as_json:
        print_json(dataclasses.asdict(found))
    else:
        show_mri(found, settings.zone)


@asynccontextmanager
async def open_memory(settings: Settings) -> AsyncIterator[tuple[Passages, Principal]]:
    """Open the memory as the operator; it is closed at the end.

    Raises:
        HanSoloError: the database is away, or an embedder can not be had.
    """
    from ..memory.opening import open_passages
    from ..principals import KIND_SCOPES, Principal

    async with open_database(settings) as db:
        passages = open_passages(settings, db)
        try:
            yield passages, Principal(user_name(), "operator", KIND_SCOPES["operator"])
        finally:
            await passages.vectors.close()


def _read(text: str | None) -> str:
    from ..errors import UsageError

    if text not in {None, "-"}:
        return str(text)
    if sys.stdin.isatty():
        raise UsageError(
            "There is no text to remember.",
            hint="Give it in quotes, or pipe it in: han-solo memory add < note.txt",
        )
    return decode(sys.stdin.buffer.read(), "What came on stdin")


def print_json(found: dict[str, Any]) -> None:
    """Print it, times in ISO 8601."""
    typer.echo(json.dumps(found, default=_plain, indent=2, ensure_ascii=False))


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
