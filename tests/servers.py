"""The real servers of one run: Postgres, the rehearsal model, Letta; shared by tests and benches.

They are the embedded parts of the product itself. Letta's environment is kept between runs in the
cache directory (``HAN_SOLO_TEST_CACHE``, or the product's own), since it takes longest to build.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import httpx

from han_solo.embedded.letta_env import ensure_letta_env
from han_solo.embedded.letta_server import EmbeddedLetta
from han_solo.embedded.ports import find_free_port
from han_solo.embedded.postgres import EmbeddedPostgres
from han_solo.embedded.progress import SilentProgress
from han_solo.embedded.rehearsal_process import RehearsalProcess
from han_solo.home import Home, default_cache
from han_solo.store.database import Database
from han_solo.store.migrate import apply_migrations

_BRIDGE_PORTS = 8
_MEMORY_DISK_BYTES = 4 * 2**30
_TEMPLATE = "template_of_tests"


@dataclass(frozen=True)
class LettaServer:
    """The run's Letta server. It accepts bridges on ``bridge_ports`` at ``/mcp``, and no others."""

    server: EmbeddedLetta
    password: str = field(repr=False)
    bridge_ports: tuple[int, ...]
    python: Path
    """Of Letta's environment."""

    @property
    def base_url(self) -> str:
        return self.server.base_url

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.password}"}

    def bridge_url(self, index: int = 0) -> str:
        return f"http://127.0.0.1:{self.bridge_ports[index]}/mcp"

    async def restart(self) -> None:
        """Stop it and start it again on the same port and database."""
        await self.server.stop()
        await self.server.start()


def cache_directory() -> Path:
    """Return where Letta's environment is kept between runs."""
    return Path(os.environ.get("HAN_SOLO_TEST_CACHE") or default_cache())


def find_memory_disk() -> Path | None:
    """Return a directory that is in memory, where a database is made five times as fast.

    Containers often have one that is too small, or from which nothing can be run.
    """
    disk = Path("/dev/shm")
    if not (disk.is_dir() and os.access(disk, os.W_OK)):
        return None
    found = os.statvfs(disk)
    is_fit = found.f_bavail * found.f_frsize >= _MEMORY_DISK_BYTES
    return disk if is_fit and not found.f_flag & os.ST_NOEXEC else None


@contextmanager
def open_directory(parent: Path | None = None) -> Iterator[Path]:
    """Yield an empty directory that the user Postgres runs as can pass; removed at the end."""
    path = Path(tempfile.mkdtemp(prefix="han-solo-test-", dir=parent))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@asynccontextmanager
async def run_postgres(home: Home) -> AsyncIterator[EmbeddedPostgres]:
    """Run a Postgres."""
    server = EmbeddedPostgres(home, find_free_port(), cache=cache_directory())
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def run_rehearsal(home: Home) -> AsyncIterator[str]:
    """Run the rehearsal model and yield its base URL, ending in ``/v1``."""
    server = RehearsalProcess(home, find_free_port())
    await server.start()
    try:
        yield server.base_url
    finally:
        await server.stop()


@asynccontextmanager
async def run_letta(
    home: Home, postgres: EmbeddedPostgres, model_url: str
) -> AsyncIterator[LettaServer]:
    """Run a Letta."""
    python = await ensure_letta_env(cache_directory(), SilentProgress())
    ports = tuple(find_free_port() for _ in range(_BRIDGE_PORTS))
    password = "a password of the tests"
    server = EmbeddedLetta(
        python=python,
        home=home.letta,
        port=find_free_port(),
        pg_uri=postgres.url("letta"),
        password=password,
        bridge_urls=[f"http://127.0.0.1:{port}/mcp" for port in ports],
        model_url=model_url,
        model_keys={},
    )
    await server.start()
    try:
        yield LettaServer(server, password, ports, python)
    finally:
        await server.stop()


@asynccontextmanager
async def run_all() -> AsyncIterator[tuple[EmbeddedPostgres, LettaServer]]:
    """Run all of them in a home of their own."""
    with open_directory() as path:
        home = Home(path / "home")
        home.create()
        async with (
            run_postgres(home) as postgres,
            run_rehearsal(home) as model_url,
            run_letta(home, postgres, model_url) as letta,
        ):
            yield postgres, letta


async def make_template(postgres: EmbeddedPostgres) -> str:
    """Make a database with this release's schema, to be copied, and return its name."""
    db = await Database.connect(await postgres.create_database(_TEMPLATE))
    try:
        await apply_migrations(db)
    finally:
        await db.close()
    return _TEMPLATE


@asynccontextmanager
async def copied_database(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[str]:
    """Copy a database, without the rights on it, and yield the copy's URL; dropped after."""
    name = f"test_{uuid.uuid4().hex}"
    admin = await asyncpg.connect(postgres.url("postgres", "postgres"))
    try:
        await admin.execute(f"CREATE DATABASE {name} OWNER han_solo TEMPLATE {template}")
        await admin.execute(f"REVOKE ALL ON DATABASE {name} FROM PUBLIC")
    finally:
        await admin.close()
    try:
        yield postgres.url(name, "han_solo")
    finally:
        await postgres.drop_database(name)


@asynccontextmanager
async def fresh_database(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """Make an empty database with the extension ``vector`` and yield its URL; dropped after."""
    name = f"test_{uuid.uuid4().hex}"
    url = await postgres.create_database(name)
    try:
        yield url
    finally:
        await postgres.drop_database(name)


async def make_actor(letta: LettaServer) -> dict[str, str]:
    """Return headers that make the caller a user of a fresh organisation, password among them."""
    async with httpx.AsyncClient(
        base_url=letta.base_url, headers=letta.headers, timeout=60
    ) as client:
        name = f"test-{uuid.uuid4().hex}"
        made = await client.post("/v1/admin/orgs/", json={"name": name})
        organisation = made.raise_for_status().json()["id"]
        user = {"name": name, "organization_id": organisation}
        made = await client.post("/v1/admin/users/", json=user)
        headers = {**letta.headers, "user_id": made.raise_for_status().json()["id"]}
        # The first list makes the built-in tools, which the default organisation has at start.
        (await client.get("/v1/tools/?limit=1000", headers=headers)).raise_for_status()
        return headers
