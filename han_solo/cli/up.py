"""``han-solo up``: set up what is missing, run the product, show where everything is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from .run import EXIT_FAILED, command, err, out, settings, show_error

if TYPE_CHECKING:
    from ..connections import Connections
    from ..embedded.progress import Progress
    from ..embedded.stack import Stack
    from .survey_model import Survey


CLIENT: Final = "claude-code"


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("up")(up)


@command
async def up(
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Have the agent take one turn that writes a row, read the row back, and end.",
        ),
    ] = False,
) -> int:
    """Set up all that is needed and run it: Postgres, Letta, the bridge, the agent.

    What is there already is used again. With LETTA_BASE_URL, HAN_SOLO_DATABASE_URL or a model key
    the real parts are used instead of the embedded ones. Ctrl-C stops it all and loses nothing.

    Exit codes: 0 done, 1 the check failed, 2 it can not be started.
    """
    from ..embedded.stack import find_running

    found = settings()
    if check and (running := find_running(found.at)):
        out().print(f"han-solo runs already (process {running}); checking that one.\n")
        from ..connections import Connections

        connections = Connections(found)
        return await _check(connections, await _show_status(connections))
    return await _run(check=check)


async def _run(*, check: bool) -> int:
    from ..embedded.stack import Stack

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    began_at = datetime.now(UTC)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    with _progress() as progress:
        stack = Stack(settings(), progress)
        starting = asyncio.create_task(stack.start())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
    stopping.cancel()
    if stop.is_set():
        out().print("Stopped; nothing was lost.")
        return 130
    code = 0
    try:
        found = await _show_status(stack.connections)
        await _show_changes(stack.connections, found, began_at)
        _show_hints(stack)
        if check:
            code = await _check(stack.connections, found)
        else:
            if not (stack.home.tokens / CLIENT).exists():
                out().print(_connect_hint(stack.connections), markup=False, soft_wrap=True)
            await _stay(stack, stop)
    finally:
        await _stop(stack)
    return code


async def _stay(stack: Stack, stop: asyncio.Event) -> None:
    console = out()
    console.print("Running. Ctrl-C stops it all and loses nothing.\n")

    def tell(sentence: str) -> None:
        err().print(sentence, style="yellow", markup=False)

    watching = asyncio.create_task(stack.watch(tell))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({watching, stopping}, return_when=asyncio.FIRST_COMPLETED)
    for task in (watching, stopping):
        task.cancel()
    if watching.done() and not watching.cancelled():
        watching.result()  # a fault of ours: let it show


async def _stop(stack: Stack) -> None:
    console = out()
    if console.is_terminal:
        with console.status("Stopping"):
            await stack.stop()
    else:
        await stack.stop()
    console.print("Stopped; nothing was lost.")


async def _check(connections: Connections, found: Survey) -> int:
    from rich.table import Table

    from ..embedded.check import run_check
    from ..errors import HanSoloError

    console = out()
    if found.agent is None:
        console.print("[bold red]check failed[/]: there is no agent that could be asked.")
        return EXIT_FAILED
    try:
        evidence = await run_check(connections, found.agent.id)
    except HanSoloError as error:
        show_error(error)
        console.print("[bold red]check failed[/]")
        return EXIT_FAILED
    table = Table(title="The check", title_justify="left", show_header=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for label, text in evidence.lines():
        table.add_row(label, text.replace("[", r"\["))
    console.print(table)
    console.print(
        "[bold green]check passed[/]: the agent called a tool over MCP; its row is in Postgres.\n"
    )
    return 0


async def _show_status(connections: Connections) -> Survey:
    from .status import build_table
    from .survey import survey

    found = await survey(connections)
    console = out()
    console.print()
    console.print(build_table(found))
    if not found.is_well:
        console.print("What to do about it: [bold]han-solo doctor[/], in another terminal.")
    return found


async def _show_changes(connections: Connections, found: Survey, since: datetime) -> None:
    """Say what this start changed in Letta: nothing of it is to happen without a word."""
    from ..clock import Clock
    from ..reconcile.journal import Journal
    from .services import open_database

    if found.spec is None:
        return
    console = out()
    async with open_database(connections.settings) as database:
        journal = Journal(database, found.spec.name, Clock())
        runs = [run for run in await journal.load_runs() if run.started_at >= since]
        for row in reversed(runs):
            steps = await journal.load_steps(row.run_id)
            kinds = Counter(step.kind for step in steps if step.outcome == "done")
            done = ", ".join(f"{kind.replace('_', ' ')} ({n})" for kind, n in kinds.items())
            console.print(f"\nBrought in line with what is declared: {done or 'nothing'}.")
            console.print("The journal in Postgres (han_solo.reconcile_steps) has the old values.")


def _show_hints(stack: Stack) -> None:
    console = out()
    if stack.model is not None and stack.model.is_rehearsal:
        console.print(
            "\nNo model key is set, so the [bold]rehearsal model[/] answers: a stand-in that calls "
            "tools when told to and understands nothing. Set one, such as GEMINI_API_KEY, for a "
            "real one.\n",
        )


def _connect_hint(connections: Connections) -> str:
    program = shlex.quote(str(Path(sys.executable).with_name("han-solo")))
    token = shlex.quote(str(connections.home.tokens / CLIENT))
    return (
        "To give Claude Code the same memory, once:\n"
        f"  {program} tokens create {CLIENT} --kind client --write\n"
        f"  claude mcp add --transport http han-solo {connections.bridge_local_url}/mcp \\\n"
        f'    --header "Authorization: Bearer $(cat {token})"\n'
    )


def _progress() -> contextlib.AbstractContextManager[Progress]:
    from ..embedded.progress import LineProgress, TerminalProgress

    console = out()
    if console.is_terminal and os.environ.get("TERM") != "dumb":
        return TerminalProgress(console)
    return LineProgress(sys.stdout)
