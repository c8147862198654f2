"""``han-solo letta serve``: an operator's own Letta installation, started through our launcher.

It is for those who run Letta themselves and want the bridge on loopback, which Letta refuses with
no switch. Environment and database are theirs: nothing is set in the one, and nothing is made in
the other unless it is empty.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from ..errors import EmbeddedError, HanSoloError
from .run import settings, show_error

app = typer.Typer(help="Letta itself.", no_args_is_help=True)

_DEFAULT_PORT: Final = 8283  # Letta's own


@app.callback()
def _group() -> None:
    """Letta itself."""


@app.command()
def serve(
    python: Annotated[
        Path, typer.Option(help="Python of the environment that has Letta 0.16.8 in it.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = _DEFAULT_PORT,
    bridge_url: Annotated[
        str | None,
        typer.Option(help="The bridge's URL, ending in /mcp. Default: this installation's."),
    ] = None,
) -> None:
    """Start your own Letta so that it accepts the bridge on loopback, and nothing else there.

    Your environment is used as it is (LETTA_PG_URI, model keys, LETTA_SERVER_PASSWORD). The schema
    is made when the database is empty; a database that holds one is not touched.

    Exit codes: Letta's own, or 2 when it can not be started.
    """
    try:
        _exec(python, host, port, bridge_url)
    except HanSoloError as error:
        show_error(error)
        raise typer.Exit(error.exit_code) from error


def _exec(python: Path, host: str, port: int, bridge_url: str | None) -> None:
    """Become Letta, so that signals and exit code are its own."""
    from ..connections import Connections
    from ..embedded.letta_server import LAUNCHER
    from ..embedded.ports import keep_ports

    if not (python.is_file() and os.access(python, os.X_OK)):
        raise EmbeddedError(
            f"There is no Python at {python}.",
            hint="Give the one of Letta's environment, such as ~/letta/.venv/bin/python.",
        )
    if bridge_url is None:
        found = settings()
        found.at.create()
        keep_ports(found)  # the bridge may be started after its Letta
        bridge_url = Connections(found).bridge_mcp_url
    argv = [str(python), str(LAUNCHER), "--host", host, "--port", str(port)]
    os.execve(python, argv, {**os.environ, "HAN_SOLO_ALLOW_MCP_URLS": bridge_url})  # noqa: S606 no shell
