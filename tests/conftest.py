"""Fixtures that all tests share: real servers, started once a run and only when a test asks.

The Postgres and the Letta here are the embedded parts of the product itself. Letta's environment is
kept between runs in the cache directory (``HAN_SOLO_TEST_CACHE``, or the product's own), since it
takes longest to build. Tests share the one Letta server: ``letta_actor`` gives each an organisation
of its own, in which it sees no agent, tool, block or MCP server of another test.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from han_solo.embedded.letta_env import ensure_letta_env
from han_solo.embedded.letta_server import EmbeddedLetta
from han_solo.embedded.ports import find_free_port
from han_solo.embedded.postgres import EmbeddedPostgres
from han_solo.embedded.progress import SilentProgress
from han_solo.embedded.rehearsal_process import RehearsalProcess
from han_solo.home import Home, default_cache

_BRIDGE_PORTS = 8
_SERVER_TIMEOUT_S = 900  # the first test that asks waits for Letta's environment to be built


def pytest_configure() -> None:
    """Take every setting and key of the machine out of the environment, for the whole run."""
    for name in list(os.environ):
        is_ours = name.startswith("HAN_SOLO_") and name != "HAN_SOLO_TEST_CACHE"
        if is_ours or name.startswith("LETTA_") or name.endswith("_API_KEY"):
            del os.environ[name]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the servers they ask for, and grant them the time to start."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "postgres_server" not in fixtures:
            continue
        item.add_marker(pytest.mark.postgres)
        if "letta_server" in fixtures:
            item.add_marker(pytest.mark.letta)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_SERVER_TIMEOUT_S))


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


@pytest.fixture(scope="session")
def cache() -> Path:
    return Path(os.environ.get("HAN_SOLO_TEST_CACHE") or default_cache())


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """Yield an empty directory that the user Postgres runs as can pass; ``tmp_path`` is closed."""
    path = Path(tempfile.mkdtemp(prefix="han-solo-test-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def server_home() -> Iterator[Home]:
    """Yield the home of the run's servers."""
    path = Path(tempfile.mkdtemp(prefix="han-solo-test-"))
    path.chmod(0o711)
    home = Home(path / "home")
    home.create()
    yield home
    shutil.rmtree(path)


@pytest.fixture(scope="session")
async def postgres_server(server_home: Home, cache: Path) -> AsyncIterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(server_home, find_free_port(), cache=cache)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def database_url(postgres_server: EmbeddedPostgres) -> AsyncIterator[str]:
    """Yield the URL of a fresh, empty database with the extension ``vector``; dropped after."""
    name = f"test_{uuid.uuid4().hex}"
    yield await postgres_server.create_database(name)
    await postgres_server.drop_database(name)


@pytest.fixture(scope="session")
async def rehearsal_url(server_home: Home) -> AsyncIterator[str]:
    """Yield the base URL of the rehearsal model, ending in ``/v1``."""
    server = RehearsalProcess(server_home, find_free_port())
    await server.start()
    yield server.base_url
    await server.stop()


@pytest.fixture(scope="session")
async def letta_server(
    postgres_server: EmbeddedPostgres, rehearsal_url: str, server_home: Home, cache: Path
) -> AsyncIterator[LettaServer]:
    python = await ensure_letta_env(cache, SilentProgress())
    ports = tuple(find_free_port() for _ in range(_BRIDGE_PORTS))
    password = "a password of the tests"
    server = EmbeddedLetta(
        python=python,
        home=server_home.letta,
        port=find_free_port(),
        pg_uri=postgres_server.url("letta"),
        password=password,
        bridge_urls=[f"http://127.0.0.1:{port}/mcp" for port in ports],
        model_url=rehearsal_url,
        model_keys={},
    )
    await server.start()
    yield LettaServer(server, password, ports, python)
    await server.stop()


@pytest.fixture
async def letta_actor(letta_server: LettaServer) -> Mapping[str, str]:
    """Return headers that make the caller a user of a fresh organisation, password among them."""
    async with httpx.AsyncClient(
        base_url=letta_server.base_url, headers=letta_server.headers, timeout=60
    ) as client:
        name = f"test-{uuid.uuid4().hex}"
        made = await client.post("/v1/admin/orgs/", json={"name": name})
        organisation = made.raise_for_status().json()["id"]
        user = {"name": name, "organization_id": organisation}
        made = await client.post("/v1/admin/users/", json=user)
        headers = {**letta_server.headers, "user_id": made.raise_for_status().json()["id"]}
        # The first list makes the built-in tools, which the default organisation has at start.
        (await client.get("/v1/tools/?limit=1000", headers=headers)).raise_for_status()
        return headers
