"""``han-solo bridge`` as a process: its port, its signals, what keeps it from starting."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time

import httpx
import pytest

from han_solo.home import Home

SLOW = '''
import asyncio
from han_solo import MemoryContext, tool

@tool(effect="read")
async def sleep_long(context: MemoryContext, seconds: float) -> str:
    """Sleep.

    Args:
        seconds: How long.
    """
    await asyncio.sleep(seconds)
    return "slept"
'''


@pytest.fixture
def environment(tmp_path):
    """Return an environment in which both database and Letta are away."""
    own = tmp_path / "own" / "tools"
    own.mkdir(parents=True)
    (own / "slow.py").write_text(SLOW)
    return {
        **os.environ,
        "HAN_SOLO_HOME": str(tmp_path / "home"),
        "HAN_SOLO_DATABASE_URL": "postgresql://a:s3cret@127.0.0.1:9/b",
        "LETTA_BASE_URL": "http://127.0.0.1:9",
        "HAN_SOLO_EXTENSIONS": str(tmp_path / "own"),
        "HAN_SOLO_LOG_FORMAT": "json",
    }


@contextlib.asynccontextmanager
async def process(environment, cwd):
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "han_solo", "bridge"),
        cwd=cwd,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def wait_line(child, event):
    """Read the log until a line of that event, and return it."""
    async with asyncio.timeout(60):
        while line := await child.stderr.readline():
            found = json.loads(line)
            if found["event"] == event:
                return found
    raise AssertionError(f"{event} was not logged")


async def fail(environment, cwd):
    """Run it to its end; return exit code and what it says."""
    async with process(environment, cwd) as child:
        async with asyncio.timeout(60):
            _, said = await child.communicate()
        return child.returncode, said.decode()


async def test_the_port_is_picked_once_and_kept(environment, tmp_path):
    ports = []
    for _ in range(2):
        async with process(environment, tmp_path) as child:
            ports.append((await wait_line(child, "bridge.started"))["port"])
            child.terminate()
    assert ports[0] == ports[1] == Home(tmp_path / "home").load_endpoints().bridge_port


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_order_within_seconds(environment, tmp_path, number):
    async with process(environment, tmp_path) as child:
        await wait_line(child, "bridge.started")
        started = time.monotonic()
        child.send_signal(number)
        await wait_line(child, "bridge.stopped")
        assert await child.wait() == 0
        assert time.monotonic() - started < 5


async def test_requests_under_way_are_answered_before_it_ends(environment, tmp_path, database_url):
    environment["HAN_SOLO_DATABASE_URL"] = database_url
    async with process(environment, tmp_path) as child:
        port = (await wait_line(child, "bridge.started"))["port"]
        token = Home(tmp_path / "home").read_token("agent")
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
        }
        params = {"name": "sleep_long", "arguments": {"seconds": 1.5}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        async with httpx.AsyncClient(timeout=30) as client:
            calling = asyncio.create_task(
                client.post(f"http://127.0.0.1:{port}/mcp", json=body, headers=headers)
            )
            await asyncio.sleep(0.5)
            child.terminate()
            response = await calling
        assert response.json()["result"]["content"][0]["text"] == "slept"
        assert await child.wait() == 0


async def test_it_serves_degraded_while_everything_is_away(environment, tmp_path):
    async with process(environment, tmp_path) as child:
        port = (await wait_line(child, "bridge.started"))["port"]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            response = await client.get("/health")
        assert response.status_code == 200
        assert response.json()["status"] == "degraded"
        assert set(response.json()["failed"]) == {"memory_db", "agent"}
        assert "s3cret" not in response.text
        line = await wait_line(child, "bridge.sync_failed")
        assert "s3cret" not in str(line)


async def test_a_taken_port_is_one_sentence(environment, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        environment["HAN_SOLO_BRIDGE_PORT"] = str(taken.getsockname()[1])
        code, said = await fail(environment, tmp_path)
    assert code == 2
    assert "can not listen on 127.0.0.1:" in said
    assert "Address already in use" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("HAN_SOLO_BRIDGE_HOST", "not an address", "is no address"),
        ("HAN_SOLO_BRIDGE_HOST", "203.0.113.7", "can not listen on 203.0.113.7"),
        ("HAN_SOLO_EXTENSIONS", "/nowhere/at/all", "does not exist"),
        ("HAN_SOLO_AGENT_SPEC", "/nowhere.toml", "/nowhere.toml"),
        ("HAN_SOLO_DATABASE_URL", "mysql://x", "HAN_SOLO_DATABASE_URL"),
    ],
)
async def test_what_can_not_be_used_ends_it_with_a_sentence(
    environment, tmp_path, variable, value, said
):
    code, text = await fail(environment | {variable: value}, tmp_path)
    assert code == 2
    assert said in text
    assert "Traceback" not in text


async def test_a_database_newer_than_the_code_ends_it(environment, tmp_path, database_url):
    import asyncpg

    environment["HAN_SOLO_DATABASE_URL"] = database_url
    async with process(environment, tmp_path) as child:
        await wait_line(child, "bridge.started")
        child.terminate()
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "INSERT INTO han_solo.migrations (version, name, checksum, applied_by) "
        "VALUES (9999, 'later', repeat('a', 64), '9.9')"
    )
    await connection.close()
    code, text = await fail(environment, tmp_path)
    assert code == 2
    assert "newer" in text


async def test_listening_beyond_loopback_without_a_url_is_warned_of(environment, tmp_path):
    environment["HAN_SOLO_BRIDGE_HOST"] = "0.0.0.0"
    async with process(environment, tmp_path) as child:
        line = await wait_line(child, "bridge.exposed")
        assert line["level"] == "warning"
        assert "TLS" in line["hint"]
