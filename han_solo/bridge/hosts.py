"""Which Host and Origin headers are answered: the guard against DNS rebinding.

A web page can make its own name resolve to 127.0.0.1 and have the browser call the bridge under
that name; the Host header still tells, so a name we were never given is refused, on every route.
FastMCP has such a guard, but it takes any port of a loopback name and answers without a sentence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ..settings import Settings
from .faults import build_error

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "::1")
_UNSPECIFIED: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - recognised, not bound
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Host and Origin headers that are answered.

    ``hosts`` are (name, port); a port of None stands for any, since a proxy may or may not pass
    it on. ``origins`` are normalised (``scheme://name:port``).
    """

    hosts: frozenset[tuple[str, int | None]]
    origins: frozenset[str]

    def admits_host(self, header: str) -> bool:
        name, port = _split_host(header)
        if not name:
            return False
        return (name, None) in self.hosts or (name, port or _DEFAULT_PORTS["http"]) in self.hosts

    def admits_origin(self, origin: str, host: str) -> bool:
        """Say whether the origin is listed, or is the bridge's own (that of the Host header)."""
        normal = _normalize_origin(origin)
        if normal is None:
            return False
        own = {_normalize_origin(f"{scheme}://{host}") for scheme in _DEFAULT_PORTS}
        return normal in self.origins or normal in own


def build_allowed_hosts(settings: Settings, port: int) -> AllowedHosts:
    """Build the lists for a bridge that listens on ``port``.

    They hold the loopback names and the address listened on, both with our port; the host of
    ``bridge_url``; and what ``bridge_allowed_hosts`` and ``bridge_allowed_origins`` add.
    """
    own = [*LOOPBACK_NAMES]
    if settings.bridge_host not in _UNSPECIFIED:
        own.append(settings.bridge_host.lower())
    hosts: set[tuple[str, int | None]] = {(name, port) for name in own}
    if settings.bridge_url:
        hosts.add((urlsplit(settings.bridge_url).hostname or "", None))
    hosts.update(_split_host(entry) for entry in settings.bridge_allowed_hosts)
    return AllowedHosts(frozenset(hosts), frozenset(_normalize_all(settings)))


def _normalize_all(settings: Settings) -> Iterable[str]:
    for origin in settings.bridge_allowed_origins:
        normal = _normalize_origin(origin)
        if normal:
            yield normal


class HostGuard:
    """ASGI middleware: 421 for a Host, 403 for an Origin, that is not on the list."""

    def __init__(self, app: ASGIApp, allowed: AllowedHosts) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        origins = headers.getlist("origin")
        if len(hosts) != 1 or not self._allowed.admits_host(hosts[0]):
            refusal = build_error(
                421,
                "The bridge does not answer under this host name.",
                "Use the address it listens on, or add the name to HAN_SOLO_BRIDGE_ALLOWED_HOSTS.",
            )
        elif not all(self._allowed.admits_origin(origin, hosts[0]) for origin in origins):
            refusal = build_error(
                403,
                "Pages of this origin may not call the bridge.",
                "Add it to HAN_SOLO_BRIDGE_ALLOWED_ORIGINS if it is yours.",
            )
        else:
            await self._app(scope, receive, send)
            return
        await refusal(scope, receive, send)


def _split_host(header: str) -> tuple[str, int | None]:
    """Split ``name``, ``name:port`` or a v6 address with or without brackets; else no name."""
    text = header.strip().lower()
    if text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"
    if set(text) & set("/@?#\\ "):
        return "", None
    with contextlib.suppress(ValueError):
        parts = urlsplit(f"//{text}")
        return parts.hostname or "", parts.port
    return "", None


def _normalize_origin(origin: str) -> str | None:
    """Return ``scheme://name:port`` in lower case, or None for ``null`` and other odd ones."""
    try:
        parts = urlsplit(origin.strip().lower())
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.path not in {"", "/"}:
        return None
    return f"{parts.scheme}://{parts.hostname}:{port}"
