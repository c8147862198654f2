"""``han-solo jobs``: what runs at night, what came of it, and the pause switch."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from ..log_files import write_output_to
from ..stopping import cancel_on_sigterm
from . import run
from .services import open_database

if TYPE_CHECKING:
    from ..declare import JobSpec
    from ..registry import Registry

app = typer.Typer(
    name="jobs",
    help="Run jobs, see what came of them, pause them.",
    no_args_is_help=True,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JobName = Annotated[str, typer.Argument(help="The job; `han-solo jobs list` has their names.")]


@app.command("list")
@run.command
async def list_jobs(*, as_json: AsJson = False) -> int:
    """Show each job: when it is due next, and what came of its last run."""
    from ..clock import Clock
    from ..loader import load_registry
    from ..runs.describe import describe_jobs, load_state
    from ..runs.service import JobRuns
    from . import jobs_view

    settings = run.settings()
    registry = load_registry(settings.extensions)
    async with open_database(settings) as db:
        runs, now = JobRuns(db), Clock().now()
        if as_json:
            found = await describe_jobs(runs, registry.jobs, now, settings.zone)
            typer.echo(json.dumps(found, indent=2))
            return 0
        rows = [await load_state(runs, spec, now, settings.zone) for spec in registry.jobs]
        pause = await runs.load_pause()
    run.out().print(jobs_view.build_table(rows, settings.zone))
    if pause.is_paused:
        run.out().print(jobs_view.pause_sentence(pause, settings.zone), style="yellow")
    return 0


@app.command("run")
@run.command
async def run_one(
    name: JobName,
    *,
    if_due: Annotated[
        bool,
        typer.Option(
            "--if-due",
            help="Only when it is due, has not succeeded and is not paused; what a timer calls.",
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Once more, although it has succeeded already.")
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option(
            help="Append what is printed to this file; one over 1 MB is set aside first, five are "
            "kept. For launchd, which rotates nothing."
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Run a job now.

    Exit code 0: it succeeded, or there was no reason to run; 1: it failed, or a person is needed;
    2: it could not be begun, such as without a database; 143: it was asked to end (SIGTERM).
    """
    from ..clock import Clock
    from ..daemon.agent_parts import build_open_agent
    from ..daemon.jobs import JobServices, run_job
    from ..loader import load_registry
    from ..runs.service import JobRuns
    from . import jobs_view

    if log is not None:
        write_output_to(log)
    if if_due and again:
        raise UsageError(
            "--if-due and --again contradict each other.",
            hint="A timer takes --if-due; a person who wants it once more takes --again.",
        )
    settings = run.settings(is_service=if_due)
    spec = _find(load_registry(settings.extensions), name)
    clock = Clock()
    async with open_database(settings) as db:
        services = JobServices(
            settings=settings,
            db=db,
            runs=JobRuns(db, clock),
            zone=settings.zone,
            open_agent=build_open_agent(settings, db, clock),
            clock=clock,
        )
        with cancel_on_sigterm() as ending:
            try:
                result = await run_job(
                    services,
                    spec,
                    started_by="schedule" if if_due else "person",
                    again=again,
                    tell=lambda sentence: run.err().print(sentence, style="dim"),
                )
            except asyncio.CancelledError:
                if not ending.is_set():
                    raise
                run.err().print(f"The job {name} was asked to end, and its lease is given back.")
                return run.EXIT_TERMINATED
    if as_json:
        typer.echo(json.dumps(jobs_view.result_json(result), indent=2))
    else:
        jobs_view.show_result(result)
    return jobs_view.exit_code(result)


@app.command()
@run.command
async def history(
    name: Annotated[str | None, typer.Argument(help="One job; all when left out.")] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Runs, at most.")] = 20,
    as_json: AsJson = False,
) -> int:
    """Show the last runs, newest first, with what each can show for itself."""
    from ..loader import load_registry
    from ..runs.describe import run_json
    from ..runs.service import JobRuns
    from . import jobs_view

    settings = run.settings()
    if name is not None:
        _find(load_registry(settings.extensions), name)
    async with open_database(settings) as db:
        runs = await JobRuns(db).history(name, limit_rows=limit)
    if as_json:
        typer.echo(json.dumps([run_json(row) for row in runs], indent=2))
    elif runs:
        run.out().print(jobs_view.build_history(runs, settings.zone))
    else:
        run.out().print("No job has run yet.")
    return 0


@app.command()
@run.command
async def pause(
    reason: Annotated[str | None, typer.Option(help="Why, for whoever finds them paused.")] = None,
) -> None:
    """Pause all jobs, on every machine. A run that goes on is not stopped."""
    await _switch(paused=True, reason=reason)


@app.command()
@run.command
async def resume() -> None:
    """End the pause. What was due meanwhile runs at the next tick."""
    await _switch(paused=False)


async def _switch(*, paused: bool, reason: str | None = None) -> None:
    from ..runs.service import JobRuns
    from . import jobs_view
    from .block_session import user_name

    settings = run.settings()
    async with open_database(settings) as db:
        runs = JobRuns(db)
        before = await runs.load_pause()
        if before.is_paused == paused and not reason:
            state = jobs_view.pause_sentence(before, settings.zone) if paused else "Jobs are on."
            run.out().print(f"Nothing changed: {state}")
            return
        after = await runs.set_pause(paused=paused, by=user_name(), reason=reason)
    run.out().print(jobs_view.pause_sentence(after, settings.zone))


def _find(registry: Registry, name: str) -> JobSpec:
    spec = next((spec for spec in registry.jobs if spec.name == name), None)
    if spec is None:
        known = ", ".join(spec.name for spec in registry.jobs) or "none"
        raise UsageError(f"There is no job {name!r}.", hint=f"There are: {known}.")
    return spec
