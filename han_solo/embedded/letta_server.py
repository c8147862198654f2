"""The Letta server of ``up``: our launcher in Letta's own environment, with nothing inherited.

Letta's custom tools run with its environment, so that is built from nothing, and its home,
temporary and working directories are scratch ones under ours. It runs in secure mode; nothing
secret is on its command line; its telemetry and traces are off.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import httpx

from ..connections import LOOPBACK
from ..errors import EmbeddedError
from .letta_env import LETTA_VERSION
from .ports import refuse_taken_port
from .processes import ManagedProcess, StopStep, last_line, pause, stop_leftover

LAUNCHER: Final = Path(__file__).with_name("launcher.py")

_STOP: Final = (StopStep(signal.SIGTERM, 30.0),)  # a turn under way is given time to be stored

_QUIET: Final[Mapping[str, str]] = {
    "LETTA_DISABLE_TRACING": "true",
    # Every request to the model and its answer, again, in a table that only grows.
    "LETTA_TRACK_PROVIDER_TRACE": "false",
    "LETTA_LLM_API_LOGGING": "false",
    "LETTA_ENABLE_DB_POOL_MONITORING": "false",
    "DD_TRACE_ENABLED": "false",
    "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "ANONYMIZED_TELEMETRY": "false",
}

_TUNING: Final[Mapping[str, str]] = {
    # Off by default; on, an agent read takes 4 ms rather than 15, since each request otherwise
    # logs in to Postgres anew, several times.
    "LETTA_DISABLE_SQLALCHEMY_POOLING": "false",
    # Longer than any client keeps an idle connection: a request sent into one that the server
    # closes at that moment fails, and a message must not be sent twice.
    "LETTA_UVICORN_TIMEOUT_KEEP_ALIVE": "75",
}


class EmbeddedLetta:
    """One Letta server.

    Args:
        python: of Letta's environment (``ensure_letta_env``).
        home: a directory of its own: scratch directories, pid file and log lie in it.
        port: on 127.0.0.1.
        pg_uri: its database, password in it; an empty one gets the schema.
        password: what its clients send as the bearer token.
        bridge_urls: the MCP servers on loopback that may be registered; exactly these.
        model_url: base URL of the rehearsal model, ending in ``/v1``.
        model_keys: variables with model keys, when real models are used.
        log: by default ``letta.log`` in the home.
    """

    def __init__(
        self,
        *,
        python: Path,
        home: Path,
        port: int,
        pg_uri: str,
        password: str,
        bridge_urls: Sequence[str],
        model_url: str | None,
        model_keys: Mapping[str, str],
        log: Path | None = None,
    ) -> None:
        self.port = port
        self.base_url = f"http://{LOOPBACK}:{port}"
        self._scratch = home / "scratch"
        self._pid_file = home / "letta.pid"
        self._process = ManagedProcess(
            "Letta",
            [str(python), str(LAUNCHER), "--embedded", "--host", LOOPBACK, "--port", str(port)],
            log=log or home / "letta.log",
            env={
                **_QUIET,
                **_TUNING,
                **_base_env(python, self._scratch),
                **_model_env(model_url, model_keys),
                "LETTA_PG_URI": _without_ssl(pg_uri),
                "LETTA_SERVER_SECURE": "true",
                "LETTA_SERVER_PASSWORD": password,
                "LETTA_DEFAULT_BASE_URL": self.base_url,
                "HAN_SOLO_ALLOW_MCP_URLS": " ".join(bridge_urls),
            },
            cwd=self._scratch / "work",
            stop=_STOP,
            pid_file=self._pid_file,
        )

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process.is_running else None

    async def start(self, timeout_s: float = 180) -> None:
        """Start it and return when it answers. Idempotent.

        Raises:
            EmbeddedError: it ended or did not answer in time; carries its last line.
        """
        if self.is_running:
            return
        for name in ("home", "tmp", "work"):
            (self._scratch / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        await stop_leftover(self._pid_file, _STOP)
        refuse_taken_port(self.port, "Letta")
        await self._process.start()
        try:
            await self._wait_ready(timeout_s)
        except BaseException:
            await self._process.stop()
            raise

    async def stop(self) -> None:
        """Stop it and all it started. Idempotent."""
        await self._process.stop()

    async def _wait_ready(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        async with httpx.AsyncClient(base_url=self.base_url, timeout=10, trust_env=False) as client:
            while time.monotonic() < deadline:
                if not self._process.is_running:
                    raise EmbeddedError(
                        f"Letta did not start: {_explain(self._process.read_log_tail())}.",
                        hint=f"Its log is {self._process.log}.",
                    )
                try:
                    answer = await client.get("/v1/health/")
                except httpx.TransportError:
                    await pause()
                    continue
                if answer.is_success:
                    return
                await pause()
        raise EmbeddedError(
            f"Letta {LETTA_VERSION} did not answer within {timeout_s:.0f} s.",
            hint=f"Its log is {self._process.log}.",
        )


def _explain(said: str) -> str:
    """Return the launcher's own sentence if there is one, else what came last."""
    sentences = [line for line in said.splitlines() if line.startswith("error: ")]
    return last_line("\n".join(sentences) or said).removeprefix("error: ")


def _base_env(python: Path, scratch: Path) -> dict[str, str]:
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    kept = ("SSL_CERT_FILE", "SSL_CERT_DIR", "TZ", *proxies)
    return {
        "PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(scratch / "home"),
        "TMPDIR": str(scratch / "tmp"),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        **{name: os.environ[name] for name in kept if name in os.environ},
    }


def _model_env(model_url: str | None, model_keys: Mapping[str, str]) -> dict[str, str]:
    if model_url is None:
        return dict(model_keys)
    # Any key will do for the rehearsal model; without one Letta does not list the provider.
    return {"OPENAI_API_KEY": "rehearsal", "OPENAI_BASE_URL": model_url}


def _without_ssl(pg_uri: str) -> str:
    """Say in the URI that there is no TLS: with its pool on, Letta demands it otherwise."""
    return pg_uri if "ssl" in pg_uri else f"{pg_uri}{'&' if '?' in pg_uri else '?'}sslmode=disable"
