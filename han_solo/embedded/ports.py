"""Ports of the embedded parts: picked free, refused in one sentence when someone else has them."""

from __future__ import annotations

import random
import socket
from dataclasses import replace
from typing import Final

import psutil

from ..connections import LOOPBACK
from ..errors import EmbeddedError
from ..home import Endpoints
from ..settings import Settings

_RANGE: Final = range(20_000, 32_000)
"""Below the ports that Linux and macOS lend to outgoing connections: a kept port of theirs would
be taken now and then by anyone who connects to anything."""

_ATTEMPTS: Final = 100


def find_free_port() -> int:
    """Return a port on loopback that nobody uses at this moment."""
    for port in random.SystemRandom().sample(_RANGE, _ATTEMPTS):
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise EmbeddedError(
        f"No port between {_RANGE.start} and {_RANGE.stop} is free.",
        hint="See what listens on so many, or set HAN_SOLO_BRIDGE_PORT.",
    )


def refuse_taken_port(port: int, name: str, *, host: str = LOOPBACK) -> None:
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


def keep_ports(settings: Settings) -> Endpoints:
    """Choose the ports that have none yet, and keep them.

    A chosen port is kept even when someone else listens on it by now: the bridge's URL is stored in
    Letta, and the model's in every agent, so another port would break both without a word.
    """
    known = settings.at.load_endpoints()
    taken = {port for port in vars_of(known).values() if port}
    chosen = {}
    for name, port in vars_of(known).items():
        if name == "bridge_port" and settings.bridge_port:
            chosen[name] = settings.bridge_port
        elif not port:
            while (free := find_free_port()) in taken:
                pass
            taken.add(free)
            chosen[name] = free
    kept = replace(known, **chosen)
    if kept != known:
        settings.at.write_endpoints(kept)
    return kept


def vars_of(endpoints: Endpoints) -> dict[str, int]:
    """Return the ports by field name."""
    return {name: getattr(endpoints, name) for name in Endpoints.__slots__}
