"""What ``doctor`` looks at beyond the parts: whether they can reach each other, and safety."""

from __future__ import annotations

import ipaddress
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ..connections import Connections
from ..errors import HanSoloError
from ..reconcile.plan import RegisterServer, UpdateServer
from .doctor_settings import examine_variables
from .survey_model import Part, Survey

REHEARSAL: Final = "rehearsal"

WAYS_ROUND: Final = (
    "Best first: start your Letta through our launcher, which allows exactly the bridge's URL "
    "(han-solo letta serve --python /path/to/letta/bin/python); or give the bridge a public name "
    "with TLS in front of it and set HAN_SOLO_BRIDGE_URL=https://NAME/mcp."
)


def examine(connections: Connections, found: Survey) -> list[Part]:
    """Return what was looked at, in order."""
    return [
        *_examine_reach(connections, found),
        *_examine_modes(connections),
        *_examine_model(found),
        *_examine_listening(connections),
        *examine_variables(),
    ]


def is_refused_by_letta(url: str) -> bool:
    """Say whether Letta 0.16.8 refuses the URL of an MCP server by its literal host.

    It also resolves names when it connects, which can only be seen from where it runs.
    """
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    if host in {"localhost", "metadata.google.internal"} or host.endswith(
        (".local", ".localdomain", ".home.arpa", ".svc", ".cluster.local")
    ):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def _examine_reach(connections: Connections, found: Survey) -> Iterator[Part]:
    try:
        url = connections.bridge_mcp_url
    except HanSoloError:
        return  # the bridge never ran; its own line says so
    if connections.letta_is_embedded:
        yield Part("reach", "ok", url, "our launcher lets Letta reach the bridge")
    elif found.plan is not None and not any(
        isinstance(step, RegisterServer | UpdateServer) for step in found.plan.steps
    ):
        yield Part("reach", "ok", url, "Letta has the bridge registered at this address")
    elif not is_refused_by_letta(url):
        yield Part("reach", "ok", url, "Letta accepts the bridge's address")
    else:
        yield Part(
            "reach",
            "warning",
            url,
            "Letta 0.16.8 refuses MCP servers on loopback, private and container addresses, with "
            "no switch to allow them, and one such row makes its whole list of MCP servers an "
            "error. Only a Letta that was started through our launcher accepts this one.",
            WAYS_ROUND,
        )


def _examine_modes(connections: Connections) -> Iterator[Part]:
    home = connections.home
    if not home.root.exists():
        return
    loose = [
        path
        for folder in (home.secrets, home.tokens, home.run)
        if folder.is_dir()
        for path in [folder, *folder.iterdir()]
        if _is_open_to_others(path)
    ]
    if loose:
        yield Part(
            "secrets",
            "failed",
            str(home.root),
            f"others can read {', '.join(str(path) for path in loose[:5])}",
            f"chmod -R go= {home.secrets} {home.tokens} {home.run}",
        )
    else:
        yield Part("secrets", "ok", str(home.root), "secrets and tokens are closed to others")


def _is_open_to_others(path: Path) -> bool:
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO))
    except OSError:
        return False


def _examine_model(found: Survey) -> Iterator[Part]:
    if found.agent is None:
        return
    handle = str(found.agent.llm_config.get("handle") or "")
    if handle.endswith(f"/{REHEARSAL}"):
        yield Part(
            "model",
            "warning",
            handle,
            "the rehearsal model answers: a stand-in that calls a tool when told to and "
            "understands nothing",
            "Set a model key, such as GEMINI_API_KEY, in the environment or .env, and start again.",
        )


def _examine_listening(connections: Connections) -> Iterator[Part]:
    settings = connections.settings
    try:
        is_loopback = ipaddress.ip_address(settings.bridge_host).is_loopback
    except ValueError:
        is_loopback = settings.bridge_host == "localhost"
    url = settings.bridge_url or ""
    if not is_loopback and not url.startswith("https://"):
        yield Part(
            "listening",
            "warning",
            settings.bridge_host,
            "the bridge listens beyond this machine and tokens would cross the network in clear",
            "Put TLS in front of it and set HAN_SOLO_BRIDGE_URL=https://NAME/mcp, or set "
            "HAN_SOLO_BRIDGE_HOST=127.0.0.1.",
        )
    if os.geteuid() == 0:
        yield Part(
            "user",
            "warning",
            "root",
            "han-solo runs as root, and so do Letta's sandboxes for custom tools",
            "Run it as a user of its own.",
        )
