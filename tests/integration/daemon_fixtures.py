"""Daemons as processes of their own, over a real bridge, Letta and Postgres."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from han_solo.blocks.model import Rights
from han_solo.letta.gateway import LettaGateway
from han_solo.loader import load_registry
from han_solo.reconcile.spec import load_spec
from tests.contract.actor import open_gateway
from tests.integration.bridge_fixtures import connect_letta, running
from tests.integration.letta_door import Door, open_door

ROOT = Path(__file__).resolve().parents[2]
SPEC = """\
[agent]
name = "{name}"
person = "Scott"

[model]
handle = "openai-proxy/rehearsal"
context_window = 200000
temperature = 0.3
max_tokens = 4096
"""

SLOW_GUARD = '''
import asyncio
import os
from pathlib import Path

from han_solo import CheckContext, Finding, RemedyContext, guard
from han_solo.errors import HanSoloError

OWN, ME = Path(__file__).parents[1], os.getpid()


async def _mend(context: RemedyContext, findings: tuple[Finding, ...]) -> str:
    (OWN / f"began-{ME}").touch()
    while not (OWN / f"go-{ME}").exists():
        await asyncio.sleep(0.02)
    try:
        await context.letta_writes.add_tags(context.agent_id, [f"mended-by-{ME}"])
    except HanSoloError as error:
        (OWN / f"{type(error).__name__}-{ME}").touch()
        raise
    (OWN / f"wrote-{ME}").touch()
    return "A tag was added."


@guard(every_s=1, incident="slow", mode="repair", remedy=_mend)
async def slow(context: CheckContext) -> tuple[Finding, ...]:
    """Find an agent that nobody mended."""
    tags = (await context.agent()).tags
    if any(tag.startswith("mended-by-") for tag in tags):
        return ()
    return (Finding(key="it", summary="Nobody mended it.", hint="Mend it."),)
'''
SLOW_PAGE = """\
# Slow

Guard: `slow`.

## What happened
It.
## Why
It was so.
## How it is found
By looking.
## What repairs it
The remedy.
"""


@dataclass(frozen=True)
class Typed:
    """What came of a command."""

    returncode: int
    said: str


@dataclass
class Installation:
    """One installation, whose daemons a test starts, stops and kills."""

    environment: Mapping[str, str]
    door: Door
    db: asyncpg.Pool
    http: httpx.AsyncClient
    gateway: LettaGateway
    agent_id: str
    log: Path
    own: Path
    """Where guards of a test's own may lie, as an operator's do."""
    stop_bridge: Callable[[], Awaitable[None]]
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def start(self, *, is_waited_for: bool = True, **more: str) -> asyncio.subprocess.Process:
        """Start a daemon and wait until it leads or stands by."""
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "han_solo",
                "daemon",
                cwd=self.log.parent,
                env={**self.environment, **more},
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
            )
        self.processes.append(process)
        if is_waited_for:
            await self.wait(lambda: self.state_of(process))
        return process

    async def type(self, *words: str) -> Typed:
        """Type a command of han-solo, and return what it said."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "han_solo",
            *words,
            cwd=self.log.parent,
            env=dict(self.environment),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        assert process.returncode is not None
        return Typed(process.returncode, said.decode())

    async def state_of(self, process: asyncio.subprocess.Process) -> str | None:
        assert process.returncode is None, self.log.read_text(encoding="utf-8")
        state: str | None = await self.db.fetchval(
            "SELECT state FROM han_solo.daemons WHERE holder LIKE $1", f"process {process.pid} on %"
        )
        return state

    async def leads(self, process: asyncio.subprocess.Process) -> bool:
        return await self.state_of(process) == "leading"

    @staticmethod
    async def wait(holds: Any, timeout_s: float = 60) -> Any:
        """Wait until something holds, and return it."""
        async with asyncio.timeout(timeout_s):
            while not (found := await holds()):
                await asyncio.sleep(0.05)
        return found

    async def config(self) -> dict[str, Any]:
        return dict((await self.gateway.fetch_agent(self.agent_id)).llm_config)

    async def spoil(self) -> None:
        """Switch the model behind our back, to the one it has: Letta rebuilds the settings."""
        answer = await self.http.patch(
            f"/v1/agents/{self.agent_id}", json={"model": "openai-proxy/rehearsal"}
        )
        answer.raise_for_status()

    async def is_whole(self) -> bool:
        config = await self.config()
        return (config["context_window"], config["temperature"], config["max_tokens"]) == (
            200_000,
            0.3,
            4096,
        ) and not config["enable_reasoner"]

    async def remedies(self) -> list[asyncpg.Record]:
        rows: list[asyncpg.Record] = await self.db.fetch(
            "SELECT * FROM han_solo.remedies ORDER BY id"
        )
        return rows

    def add_slow_guard(self) -> None:
        """Add a guard whose remedy waits for ``let_go``, then puts its process's id onto the agent.

        It notes that it has begun, and what came of its write.
        """
        pages = self.own / "docs" / "incidents"
        pages.mkdir(parents=True)
        (pages / "slow.md").write_text(SLOW_PAGE, encoding="utf-8")
        (self.own / "guards" / "slow.py").write_text(SLOW_GUARD, encoding="utf-8")

    def let_go(self, process: asyncio.subprocess.Process) -> None:
        """Let the slow remedy of a process go on."""
        (self.own / f"go-{process.pid}").touch()

    async def note_of(self, process: asyncio.subprocess.Process, note: str) -> bool:
        """Say whether the slow remedy of a process has left this note."""
        return (self.own / f"{note}-{process.pid}").exists()

    async def end_all(self) -> None:
        for process in self.processes:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                    process.kill()
                await process.wait()


@contextlib.asynccontextmanager
async def open_installation(
    tmp_path: Path,
    letta_server: Any,
    actor: Mapping[str, str],
    database_url: str,
    *,
    daemon_database_url: str | None = None,
    spec_text: str = SPEC,
) -> AsyncIterator[Installation]:
    """Open an installation whose bridge runs and whose agent is in sync."""
    name = f"watched-{uuid.uuid4().hex[:8]}"
    spec = tmp_path / "agent.toml"
    spec.write_text(spec_text.format(name=name), encoding="utf-8")
    password = actor["Authorization"].removeprefix("Bearer ")
    options = {
        "agent_spec": spec,
        "letta_base_url": letta_server.base_url,
        "letta_password": password,
        "bridge_port": letta_server.bridge_ports[5],
        "bridge_name": name,
    }
    gateway, _ = open_gateway(letta_server.base_url, actor)
    letta = connect_letta(letta_server.base_url, password, actor["user_id"])
    async with (
        open_door(letta_server.base_url, actor) as door,
        contextlib.AsyncExitStack() as bridges,
        httpx.AsyncClient(base_url=letta_server.base_url, headers=actor, timeout=60) as http,
        gateway,
        asyncpg.create_pool(database_url, min_size=1, max_size=2) as db,
    ):
        bridge = await bridges.enter_async_context(
            running(
                tmp_path,
                load_registry(),
                letta=letta,
                database_url=database_url,
                agent_name=name,
                rights=Rights.of(load_spec(spec).blocks),
                **options,
            )
        )
        await bridge.wait_health(lambda found: found["sync"]["tools_in_sync"])
        agent_id = await db.fetchval("SELECT agent_id FROM han_solo.agents")
        own = tmp_path / "own"
        (own / "guards").mkdir(parents=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(ROOT),
            "HAN_SOLO_HOME": str(tmp_path / "home"),
            "HAN_SOLO_DATABASE_URL": daemon_database_url or database_url,
            "LETTA_BASE_URL": door.url,
            "LETTA_SERVER_PASSWORD": password,
            "HAN_SOLO_AGENT_SPEC": str(spec),
            "HAN_SOLO_BRIDGE_PORT": str(options["bridge_port"]),
            "HAN_SOLO_BRIDGE_NAME": name,
            "HAN_SOLO_LOG_FORMAT": "json",
            "HAN_SOLO_GUARD_EVERY_S": "context_window=1,reasoner_off=1",
            "HAN_SOLO_EXTENSIONS": str(own),
        }
        installation = Installation(
            environment,
            door,
            db,
            http,
            gateway,
            agent_id,
            tmp_path / "daemon.log",
            own,
            bridges.aclose,
        )
        try:
            yield installation
        finally:
            await installation.end_all()
