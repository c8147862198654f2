"""Run the bridge in this process: take the port, open what can be opened, serve, heal, end cleanly.

The order matters. The port is taken first, since it is in what Letta stores. The sync comes after
the bridge listens, since Letta connects back to it while it registers the tools.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import uvicorn

from .. import logs
from ..blocks.model import Rights
from ..connections import Connections
from ..errors import BridgeError, DatabaseUnavailable, SettingsError
from ..loader import load_registry
from ..reconcile.spec import load_spec
from ..registry import Registry
from ..settings import Settings
from ..stopping import stop_on_signals
from .app import build_app
from .backend import BridgeBackend
from .hosts import build_allowed_hosts
from .letta import Letta

_log = logs.get("bridge")

SHUTDOWN_S: Final = 5
"""Seconds that requests under way have to finish after SIGTERM."""

_BACKLOG: Final = 128
_STARTED_POLL_S: Final = 0.02


async def serve_bridge(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT.

    A database or a Letta that is away does not keep it from starting: it serves degraded and heals.

    Raises:
        BridgeError: the port is taken, or the address can not be listened on.
        HanSoloError: settings, spec, tools or database can not be used as they are.
    """
    connections = Connections(settings)
    registry = load_registry(settings.extensions)
    spec = load_spec(settings.agent_spec, person=settings.person, model=connections.model)
    _warn_if_exposed(settings)
    connections.home.create()
    listener = take_port(connections)
    with contextlib.closing(listener):
        backend = BridgeBackend(
            connections,
            spec.name,
            registry,
            Letta.connect(connections),
            rights=Rights.of(spec.blocks),
        )
        try:
            with contextlib.suppress(DatabaseUnavailable):  # seen in the health; healed below
                await backend.open()
            with stop_on_signals() as stop:
                await run_app(registry, backend, listener, stop)
        finally:
            await backend.close()


async def run_app(
    registry: Registry, backend: BridgeBackend, listener: socket.socket, stop: asyncio.Event
) -> None:
    """Serve on the listener until ``stop`` is set and the requests under way are answered."""
    host, port = listener.getsockname()[:2]
    allowed = build_allowed_hosts(backend.connections.settings, port)
    server = _Server(_configure(build_app(registry, backend, allowed)))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stop.wait())
    healing: asyncio.Task[None] | None = None
    try:
        while not (server.started or serving.done()):  # noqa: ASYNC110 - uvicorn has no event
            await asyncio.sleep(_STARTED_POLL_S)
        if server.started:
            _log.info("bridge.started", host=host, port=port)
            healing = asyncio.create_task(backend.heal())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.should_exit = True
        stopping.cancel()
        if healing is not None:
            healing.cancel()
            await asyncio.gather(healing, return_exceptions=True)
        await serving
        _log.info("bridge.stopped", host=host, port=port)


def take_port(connections: Connections) -> socket.socket:
    """Listen on the port set or kept; where there is none yet, on a free one, which is kept.

    Raises:
        BridgeError: it is taken, or not ours to take.
    """
    host, port = connections.settings.bridge_host, connections.bridge_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named asyncio sees TCP and turns Nagle's delay off: 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # an old one's last packets
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except (OSError, UnicodeError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise BridgeError(
            f"The bridge can not listen on {host}:{port}: {reason}.",
            hint="See what does (`han-solo status`), or set HAN_SOLO_BRIDGE_PORT; a new port "
            "changes the URL that Letta has, which the next sync puts right.",
        ) from error
    if not port:
        endpoints = connections.home.load_endpoints()
        taken = listener.getsockname()[1]
        connections.home.write_endpoints(replace(endpoints, bridge_port=taken))
    return listener


def _configure(app: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        lifespan="on",
        ws="none",
        access_log=False,  # the app logs its own lines
        log_config=None,
        server_header=False,
        proxy_headers=False,  # nothing here depends on the caller's address
        timeout_graceful_shutdown=SHUTDOWN_S,
    )


class _Server(uvicorn.Server):
    """A uvicorn that leaves the signals to us.

    Its own handling raises them again at the end, before the pool is closed.
    """

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _warn_if_exposed(settings: Settings) -> None:
    if not is_loopback(settings.bridge_host) and not settings.bridge_url:
        _log.warning(
            "bridge.exposed",
            host=settings.bridge_host,
            why="tokens would cross the network in the clear",
            hint="Put a proxy with TLS in front, listen on 127.0.0.1, and set HAN_SOLO_BRIDGE_URL "
            "to the proxy's https address.",
        )


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach the address.

    Raises:
        SettingsError: it is no address.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError as error:
        raise SettingsError(
            f"HAN_SOLO_BRIDGE_HOST is {host!r}, which is no address.",
            hint="Give the address of an interface, such as 127.0.0.1 or 0.0.0.0.",
        ) from error
