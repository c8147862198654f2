"""``han-solo daemon``: watch the agent, in the foreground."""

from __future__ import annotations

import typer

from . import run


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(daemon)


@run.command
async def daemon() -> None:
    """Run the guards at their intervals and the jobs that are due, until Ctrl-C or SIGTERM.

    Several may run on one database: one leads, the others stand by and take over within ten
    seconds. `han-solo up` runs one. Logs go to stderr.
    """
    from ..daemon.serve import serve_daemon

    await serve_daemon(run.settings(is_service=True))
