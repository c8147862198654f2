"""Ports of the embedded parts: picked free, refused in one sentence when someone else has them."""

from __future__ import annotations

import socket
from typing import Final

import psutil

from ..errors import EmbeddedError

_HOST: Final = "127.0.0.1"


def find_free_port() -> int:
    """Return a port on loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def refuse_taken_port(port: int, name: str, *, host: str = _HOST) -> None:
    """Raise ``EmbeddedError`` when the port can not be bound; names who holds it, if known."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        try:
            probe.bind((host, port))
        except OSError as error:
            raise EmbeddedError(
                f"Port {port}, which is kept for {name}, is in use by {_describe_listener(port)}.",
                hint="Stop that program and start again.",
            ) from error


def _describe_listener(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            is_listening = connection.status == psutil.CONN_LISTEN
            if is_listening and getattr(connection.laddr, "port", 0) == port and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    except (psutil.Error, OSError):
        pass  # macOS tells root only
    return "another program"
