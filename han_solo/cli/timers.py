"""The commands that ``launchd`` and ``systemd`` share: install, uninstall, status, render."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..errors import UsageError
from . import run

if TYPE_CHECKING:
    from ..declare import JobSpec
    from ..registry import Registry
    from ..timers.installation import Installation
    from ..timers.model import Manager
    from ..timers.service import Change, TimerStatus

Names = Annotated[
    list[str] | None, typer.Argument(metavar="[JOB]...", help="Jobs; all when left out.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def build_app(
    name: str,
    manager: Callable[[], Manager],
    *,
    help: str,  # noqa: A002 - as typer calls it
    files: str,
) -> typer.Typer:
    """Build the group of commands of one manager.

    Args:
        name: of the group.
        manager: makes it.
        help: what the group is for.
        files: what is written and where, for the help.
    """
    app = typer.Typer(name=name, help=help, no_args_is_help=True)

    @app.command(
        help=f"Write {files} for the jobs and load them; those that are so already are left alone."
    )
    def install(
        jobs: Names = None,
        *,
        replace: Annotated[
            bool, typer.Option("--replace", help="Take over those of another installation too.")
        ] = False,
        as_json: AsJson = False,
    ) -> None:
        run.finish(lambda: _install(manager(), jobs, replace=replace, as_json=as_json))

    @app.command(help="Unload the jobs of this installation and take their files away.")
    def uninstall(jobs: Names = None, *, as_json: AsJson = False) -> None:
        run.finish(lambda: _uninstall(manager(), jobs, as_json=as_json))

    @app.command(
        help="Show how each stands against its declaration; exit code 3 when one does not as it "
        "should."
    )
    def status(*, as_json: AsJson = False) -> None:
        run.finish(lambda: _status(manager(), as_json=as_json))

    @app.command(
        help="Print what install would write, on any system; no secret is in it. With an option "
        "the file of secrets in the home is written too, so that what comes out works."
    )
    def render(
        jobs: Names = None,
        *,
        to: Annotated[
            Path | None, typer.Option(help="Write the files into this directory instead.")
        ] = None,
        command: Annotated[
            bool,
            typer.Option(
                "--command",
                help="Print the command of each job instead, in an empty environment: for a try, "
                "or for cron.",
            ),
        ] = False,
    ) -> None:
        run.finish(lambda: _render(manager(), jobs, to=to, command=command))

    return app


def _install(manager: Manager, names: Sequence[str] | None, *, replace: bool, as_json: bool) -> int:
    from ..timers import service

    registry, installation = _open()
    manager.require()
    changes = service.install(
        manager,
        _choose(registry, names),
        installation,
        declared=[spec.name for spec in registry.jobs],
        replace=replace,
    )
    _show_changes(changes, as_json=as_json)
    return 0


def _uninstall(manager: Manager, names: Sequence[str] | None, *, as_json: bool) -> int:
    from ..timers import service

    _, installation = _open()
    changes = service.uninstall(manager, names, installation)
    left = set(names or ()) - {change.job for change in changes}
    if left:
        raise UsageError(
            f"No timer of this installation is for {', '.join(sorted(left))}.",
            hint=f"`han-solo {manager.name} status` lists those that are there.",
        )
    _show_changes(changes, as_json=as_json)
    return 0


def _status(manager: Manager, *, as_json: bool) -> int:
    from ..timers import service

    registry, installation = _open()
    rows = service.compare(manager, registry.jobs, installation)
    if as_json:
        typer.echo(json.dumps([_row_json(row) for row in rows], indent=2))
    else:
        run.out().print(_build_table(rows, manager.name))
    return 0 if all(row.stands == "as declared" for row in rows) else run.EXIT_DRIFT


def _render(
    manager: Manager, names: Sequence[str] | None, *, to: Path | None, command: bool
) -> int:
    registry, installation = _open()
    specs = _choose(registry, names)
    if command or to is not None:
        installation.prepare()
    if command:
        for spec in specs:
            typer.echo(installation.build_line(spec.name))
        return 0
    files = {
        path: content
        for spec in specs
        for path, content in manager.render(spec, installation).items()
    }
    if to is None:
        for path, content in files.items():
            if len(files) > 1:
                typer.echo(f"==> {path} <==")
            typer.echo(content.decode())
        return 0
    try:
        to.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            (to / path.name).write_bytes(content)
            run.out().print(str(to / path.name), soft_wrap=True, markup=False)
    except OSError as error:
        raise UsageError(
            f"{to} can not be written: {error.strerror}.", hint="Name a directory that you may."
        ) from error
    return 0


def _open() -> tuple[Registry, Installation]:
    from ..loader import load_registry
    from ..timers.installation import build_installation

    settings = run.settings()
    return load_registry(settings.extensions), build_installation(settings)


def _choose(registry: Registry, names: Sequence[str] | None) -> tuple[JobSpec, ...]:
    if not names:
        return registry.jobs
    known = {spec.name: spec for spec in registry.jobs}
    for name in names:
        if name not in known:
            raise UsageError(f"There is no job {name!r}.", hint=f"There are: {', '.join(known)}.")
    return tuple(known[name] for name in dict.fromkeys(names))


def _show_changes(changes: Sequence[Change], *, as_json: bool) -> None:
    if as_json:
        found = [
            {"job": row.job, "did": row.did, "files": [str(path) for path in row.files]}
            for row in changes
        ]
        typer.echo(json.dumps(found, indent=2))
        return
    for row in changes:
        text = f"The timer of the job {row.job}: {row.did}, {row.files[0] if row.files else ''}"
        run.out().print(text.rstrip(", "), soft_wrap=True, markup=False)
    if not changes:
        run.out().print("There was none of this installation; nothing changed.")


def _row_json(row: TimerStatus) -> dict[str, object]:
    return {
        "job": row.job,
        "stands": row.stands,
        "is_loaded": row.loaded.is_loaded,
        "is_running": row.loaded.is_running,
        "last_exit": row.loaded.last_exit,
        "files": [str(path) for path in row.files],
    }


def _build_table(rows: Sequence[TimerStatus], manager: str) -> Table:
    from ..timers.service import ADVICE

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("job", "timer", "last exit code", "what mends it"):
        table.add_column(column, overflow="fold")
    for row in rows:
        loaded = row.loaded
        ended = "runs now" if loaded.is_running else "" if loaded.last_exit is None else "0"
        if loaded.last_exit:
            ended = f"[red]{loaded.last_exit}[/]"
        advice = ADVICE.get(row.stands)
        table.add_row(
            row.job,
            f"[{'green' if advice is None else 'yellow'}]{row.stands}[/]",
            ended,
            f"han-solo {manager} {advice}" if advice else "",
        )
    return table
