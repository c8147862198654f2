"""``han-solo letta serve``: an operator's own Letta through our launcher, and its refusals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import asyncpg
import httpx
import pytest

from han_solo.embedded.ports import find_free_port
from han_solo.embedded.processes import pause
from han_solo.home import Home

COMMAND = [sys.executable, "-c", "from han_solo.cli.letta import app; app()", "serve"]
BRIDGE = ("--bridge-url", "http://127.0.0.1:1/mcp")
TABLES = "SELECT array_agg(tablename::text ORDER BY 1) FROM pg_tables WHERE schemaname = 'public'"

pytestmark = pytest.mark.usefixtures("letta_server")  # its environment is the operator's here


@pytest.fixture
def database_url(empty_database_url):
    """Return a database without anything of ours, as Letta is given one."""
    return empty_database_url


@pytest.fixture
def environment(tmp_path, database_url):
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HAN_SOLO_HOME": str(tmp_path / "home"),
        "LETTA_PG_URI": database_url,
        "LETTA_SERVER_SECURE": "true",
        "LETTA_SERVER_PASSWORD": "operator's own",
    }


@contextlib.asynccontextmanager
async def served(environment, python, url, *, cwd):
    """Run the command until the block ends; gives a client of the server."""
    port = find_free_port()
    arguments = ["--python", str(python), "--port", str(port), "--bridge-url", url]
    log = cwd / "serve.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*COMMAND, *arguments], env=environment, cwd=cwd, stdout=output, stderr=output
        )
    headers = {"Authorization": "Bearer operator's own"}
    base_url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=base_url, headers=headers, timeout=60) as client:
            deadline = time.monotonic() + 180
            while True:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get("/v1/health/")).is_success:
                        break
                await pause()
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait, 60)


async def run_to_end(environment, *arguments, cwd):
    return await asyncio.to_thread(
        subprocess.run,
        [*COMMAND, *arguments],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


async def refused(environment, *arguments, cwd):
    """Run the command to its end and return the exit code and what it said."""
    done = await run_to_end(environment, *BRIDGE, *arguments, cwd=cwd)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


async def ask(url, statement):
    connection = await asyncpg.connect(url, ssl=False)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def register(client, url):
    config = {"mcp_server_type": "streamable_http", "server_url": url}
    return await client.post("/v1/mcp-servers/", json={"server_name": "it", "config": config})


async def test_an_empty_database_gets_its_schema_and_the_bridge_is_accepted(
    environment, letta_server, database_url, tmp_path
):
    url = f"http://127.0.0.1:{find_free_port()}/mcp"
    async with served(environment, letta_server.python, url, cwd=tmp_path) as client:
        made = await client.post("/v1/agents/", json={"name": "own", "model": "letta/letta-free"})
        assert made.status_code == 200, made.text
        assert (await register(client, f"http://127.0.0.1:{find_free_port()}/mcp")).is_error
        assert (await register(client, url)).is_success
    assert {"agents", "messages"} <= set(await ask(database_url, TABLES))
    assert [path.name for path in tmp_path.glob("openapi*")] == []
    # That the next start keeps what is there is shown of the embedded one, by the same launcher.
    assert await ask(database_url, "SELECT array_agg(name::text) FROM agents") == ["own"]


@pytest.mark.deep
async def test_a_database_with_a_schema_is_not_touched(
    environment, letta_server, database_url, tmp_path
):
    await ask(database_url, "CREATE TABLE alembic_version (version_num text)")
    arguments = ("--python", str(letta_server.python), "--port", str(find_free_port()))
    done = await run_to_end(environment, *BRIDGE, *arguments, cwd=tmp_path)
    assert done.returncode != 0  # Letta itself finds no tables of its own
    assert await ask(database_url, TABLES) == ["alembic_version"]


async def test_a_database_of_something_else_is_refused(
    environment, letta_server, database_url, tmp_path
):
    await ask(database_url, "CREATE TABLE ledger (n integer)")
    code, said = await refused(environment, "--python", str(letta_server.python), cwd=tmp_path)
    assert code == 2
    assert "holds tables, and none of them is Letta's" in said
    assert await ask(database_url, TABLES) == ["ledger"]


async def test_no_such_python(environment, tmp_path):
    code, said = await refused(environment, "--python", "/no/such/python", cwd=tmp_path)
    assert (code, "There is no Python at /no/such/python" in said) == (2, True)


async def test_no_letta_in_it(environment, tmp_path):
    code, said = await refused(environment, "--python", sys.executable, cwd=tmp_path)
    assert (code, "There is no Letta in the environment of" in said) == (2, True)


async def test_another_version(environment, tmp_path):
    information = tmp_path / "letta-0.32.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: letta\nVersion: 0.32.0\n")
    more = environment | {"PYTHONPATH": str(tmp_path)}
    code, said = await refused(more, "--python", sys.executable, cwd=tmp_path)
    assert (code, "has Letta 0.32.0, and only 0.16.8 will do" in said) == (2, True)


async def test_no_database_is_set(environment, letta_server, tmp_path):
    del environment["LETTA_PG_URI"]
    code, said = await refused(environment, "--python", str(letta_server.python), cwd=tmp_path)
    assert (code, "LETTA_PG_URI is not set" in said) == (2, True)


async def test_a_database_that_is_away(environment, letta_server, tmp_path):
    environment["LETTA_PG_URI"] = f"postgresql://u:hunter2@127.0.0.1:{find_free_port()}/x"
    code, said = await refused(environment, "--python", str(letta_server.python), cwd=tmp_path)
    assert (code, "Letta's database can not be used" in said) == (2, True)
    assert "hunter2" not in said


async def test_a_bridge_that_was_never_started_gets_its_port_now(environment, tmp_path):
    await run_to_end(environment, "--python", sys.executable, cwd=tmp_path)
    home = Home(Path(environment["HAN_SOLO_HOME"]))
    assert home.load_endpoints().bridge_port
