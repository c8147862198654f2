"""``han-solo memory import`` and ``export``: passages from files and to files."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from . import run
from .block_session import user_name
from .long_steps import open_progress
from .memory import AsJson, Origin, app, open_memory, print_json
from .services import open_database

if TYPE_CHECKING:
    from ..memory.transfer_import import Brought
    from ..memory.transfer_read import Checked, Source
    from ..settings import Settings


@app.command("import")
@run.command
async def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="JSON lines (.jsonl) as export writes them, prose (.md, .txt) that is one passage "
            "a file, directories of both, or `-` for JSON lines on stdin.",
            allow_dash=True,
        ),
    ],
    *,
    scope: Annotated[str, typer.Option(help="Of prose: the area it belongs to.")] = "general",
    tag: Annotated[
        list[str] | None, typer.Option(help="Of prose: a word to filter by; repeatable.")
    ] = None,
    author: Annotated[str, typer.Option(help="Of prose: whose words it is.")] = "",
    origin: Annotated[Origin, typer.Option(help="Of prose: how it came.")] = "external",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the files and say what is new; write nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> int:
    """Import passages. All files are checked first; what is there already is left out.

    A line needs a `text`; `title`, `author`, `origin`, `source`, `thread`, `scope`, `tags`, `tier`,
    `importance`, `happened_at`, `notes` and `links` as export writes them. Importing the same again
    adds nothing, so an import that was stopped is simply run again. Exit code 2: a line can not be
    imported, and nothing was written.
    """
    from ..clock import Clock
    from ..embedded.progress import SilentProgress
    from ..memory.transfer_import import bring_in, count_known
    from ..memory.transfer_read import Defaults, Files, check_files
    from ..principals import KIND_SCOPES, Principal

    settings = run.settings()
    now = Clock().now()
    operator = Principal(user_name(), "operator", KIND_SCOPES["operator"])
    defaults = Defaults(scope=scope, tags=tuple(tag or ()), author=author, origin=origin)
    with ExitStack() as held:
        files = Files(tuple(_find(paths, held)), defaults)
        checked = check_files(files, operator, now)
        _refuse_faults(checked)
        async with open_memory(settings) as (passages, principal):
            known = await count_known(passages.db, files)
            if not as_json:
                _say_checked(checked, known)
            if dry_run:
                if as_json:
                    print_json({**_checked_json(checked), "known": known})
                return 0
            is_new = known < checked.passages
            if is_new and not _agree(yes=yes, as_json=as_json):
                return run.EXIT_REFUSED
            with open_progress() if is_new else nullcontext(SilentProgress()) as progress:
                wrote = progress.step("Passages", checked.passages - known or None)
                embedded = progress.step("Vectors")
                steps = {"written": wrote, "embedded": embedded}
                brought = await bring_in(
                    passages, principal, files, now=now,
                    tell=lambda what, count: steps[what].advance(count),
                )  # fmt: skip
                wrote.done(f"{brought.new:,} written")
                embedded.done(brought.pending or "")
    if as_json:
        print_json(dataclasses.asdict(brought))
    else:
        _say_brought(brought)
    return 0


@app.command()
@run.command
async def export(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Where to; stdout if left out or `-`.",
            allow_dash=True,
        ),
    ] = None,
    *,
    scope: Annotated[list[str] | None, typer.Option(help="Only this area; repeatable.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> int:
    """Write all passages out as JSON lines: with notes, links, and what was put away.

    `import` reads them into any memory. A backup (`han-solo jobs run backup`) holds everything
    else too.
    """
    settings = run.settings()
    if path is None or str(path) == "-":
        if sys.stdout.isatty() and path is None:
            run.err().print("Writing to the terminal; name a file to keep it.", style="dim")
        await _export(settings, sys.stdout.buffer, scope or ())
        return 0
    with _whole_file(path, force=force) as file:
        count = await _export(settings, file, scope or ())
    run.err().print(
        f"{count:,} passage{'' if count == 1 else 's'} written to {path}.",
        markup=False,
        soft_wrap=True,
    )
    return 0


async def _export(settings: Settings, file: IO[bytes], scopes: Sequence[str]) -> int:
    from ..memory.transfer_export import count_passages, export_lines

    count = 0
    async with open_database(settings) as db:
        with open_progress() as progress:
            step = progress.step("Passages", await count_passages(db, scopes) or None)
            async for line in export_lines(db, scopes):
                file.write(line)
                count += 1
                step.advance(1)
            step.done(f"{count:,} written")
    file.flush()
    return count


@contextmanager
def _whole_file(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """Write a file that is there whole or not at all, and that only its owner reads.

    Raises:
        UsageError: there is one already, or it can not be written.
    """
    from ..errors import UsageError

    if path.exists() and not force:
        raise UsageError(
            f"There is a file {path} already.", hint="Name another one, or replace it with --force."
        )
    part = path.with_name(f"{path.name}.part")
    try:
        with open(part, "wb", opener=_open_private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise UsageError(
            f"{path} can not be written: {error.strerror}.", hint="Nothing was left there."
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _find(paths: Sequence[Path], held: ExitStack) -> list[Source]:
    """Return the files; stdin is kept in one, since it is read more than once."""
    from ..memory.transfer_read import Source, find_sources

    found: list[Source] = []
    for path in paths:
        if str(path) != "-":
            found += find_sources([path])
            continue
        kept = Path(held.enter_context(tempfile.TemporaryDirectory())) / "stdin.jsonl"
        with kept.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        found.append(Source(kept, "stdin", lines=True))
    return found


def _refuse_faults(checked: Checked) -> None:
    from ..errors import UsageError

    if not checked.faulty:
        return
    shown = "\n       ".join(checked.faults)
    more = checked.faulty - len(checked.faults)
    raise UsageError(
        f"{checked.faulty:,} of {checked.passages:,} passages can not be imported.",
        hint=f"{shown}\n       "
        + (f"and {more:,} more.\n       " if more else "")
        + "Mend them; nothing was written.",
    )


def _agree(*, yes: bool, as_json: bool) -> bool:
    from ..errors import UsageError

    if yes:
        return True
    if as_json or not run.is_terminal():
        raise UsageError(
            "Nobody can be asked here (no terminal, or --json), so nothing was written.",
            hint="Import with --yes, or only look with --dry-run.",
        )
    run.out().print("What is imported can be put away again, and never deleted.", style="dim")
    return typer.confirm("Import it?", default=False)


def _say_checked(checked: Checked, known: int) -> None:
    files = "1 file" if checked.files == 1 else f"{checked.files:,} files"
    passages = "1 passage" if checked.passages == 1 else f"{checked.passages:,} passages"
    rest = f", with {checked.notes:,} notes and {checked.links:,} links" * bool(
        checked.notes or checked.links
    )
    run.out().print(
        f"{passages} in {files}{rest}: {checked.passages - known:,} new, {known:,} there already.",
        soft_wrap=True,
    )


def _say_brought(brought: Brought) -> None:
    word = "passage was" if brought.new == 1 else "passages were"
    links = f", {brought.links:,} linked" * bool(brought.links)
    run.out().print(f"{brought.new:,} {word} imported{links}.", soft_wrap=True)
    if brought.lost_links:
        run.err().print(
            f"{brought.lost_links:,} links lead to passages that are neither in these files nor in "
            "the memory; they were left out.",
            style="yellow",
            soft_wrap=True,
        )
    if brought.pending:
        run.err().print(
            "They are found by their words alone until `han-solo embed fill` can make their "
            f"vectors: {brought.pending}",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )


def _checked_json(checked: Checked) -> dict[str, int]:
    return {
        "files": checked.files,
        "passages": checked.passages,
        "notes": checked.notes,
        "links": checked.links,
    }
