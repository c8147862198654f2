"""Fixtures that all tests share: real servers, started once a run and only when a test asks.

Tests share the one Letta server: ``letta_actor`` gives each an organisation of its own, in which it
sees no agent, tool, block or MCP server of another test.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import hypothesis
import pytest
import structlog

from han_solo.embedded.postgres import EmbeddedPostgres
from han_solo.home import Home
from tests import servers
from tests.servers import LettaServer

# Properties are tried on Hypothesis' own 100 examples, unless they say another number themselves.
hypothesis.settings.register_profile("deep", max_examples=1_000)

_SERVER_TIMEOUT_S = 900  # the first test that asks waits for Letta's environment to be built


def pytest_configure() -> None:
    """Take every setting and key of the machine out of the environment, for the whole run.

    A shell that runs the tests in the background makes them deaf to an interrupt, and with them the
    commands that tests start and interrupt; so that is undone.
    """
    # A process that may not keep what it compiles compiles a thousand files at each start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in list(os.environ):
        is_ours = name.startswith("HAN_SOLO_") and not name.startswith("HAN_SOLO_TEST_")
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


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Undo what a test that runs a command in this process leaves of its logging."""
    structlog.reset_defaults()
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture(scope="session")
def cache() -> Path:
    return servers.cache_directory()


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """Yield an empty directory that the user Postgres runs as can pass; ``tmp_path`` is closed."""
    with servers.open_directory(servers.find_memory_disk()) as path:
        yield path


@pytest.fixture(scope="session")
def server_home() -> Iterator[Home]:
    """Yield the home of the run's servers."""
    with servers.open_directory(servers.find_memory_disk()) as path:
        home = Home(path / "home")
        home.create()
        yield home


@pytest.fixture(scope="session")
async def postgres_server(server_home: Home) -> AsyncIterator[EmbeddedPostgres]:
    async with servers.run_postgres(server_home) as postgres:
        yield postgres


@pytest.fixture
async def empty_database_url(postgres_server: EmbeddedPostgres) -> AsyncIterator[str]:
    """Yield the URL of a fresh, empty database with the extension ``vector``; dropped after."""
    async with servers.fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
async def template(postgres_server: EmbeddedPostgres) -> str:
    """Return the name of a database with this release's schema; nobody connects to it."""
    return await servers.make_template(postgres_server)


@pytest.fixture
async def database_url(postgres_server: EmbeddedPostgres, template: str) -> AsyncIterator[str]:
    """Yield the URL of a fresh database with this release's schema; dropped after."""
    async with servers.copied_database(postgres_server, template) as url:
        yield url


@pytest.fixture(scope="session")
async def rehearsal_url(server_home: Home) -> AsyncIterator[str]:
    """Yield the base URL of the rehearsal model, ending in ``/v1``."""
    async with servers.run_rehearsal(server_home) as url:
        yield url


@pytest.fixture(scope="session")
async def letta_server(
    postgres_server: EmbeddedPostgres, rehearsal_url: str, server_home: Home
) -> AsyncIterator[LettaServer]:
    async with servers.run_letta(server_home, postgres_server, rehearsal_url) as letta:
        yield letta


@pytest.fixture
async def letta_actor(letta_server: LettaServer) -> Mapping[str, str]:
    """Return headers that make the caller a user of a fresh organisation, password among them."""
    return await servers.make_actor(letta_server)
