"""``han-solo bridge``: serve MCP and the routes beside it, in the foreground."""

from __future__ import annotations

import typer

from .run import command, settings


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bridge")(bridge)


@command
async def bridge() -> None:
    """Serve the bridge until SIGTERM or Ctrl-C; `han-solo up` runs this for you.

    It comes up while Postgres or Letta are away, says so under /health, and brings the agent's
    tools in sync once they are there.
    """
    from ..bridge.serve import serve_bridge

    await serve_bridge(settings(is_service=True))
