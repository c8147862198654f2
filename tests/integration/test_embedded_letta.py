"""The Letta server that ``up`` starts: what it accepts, whom it answers, what it keeps."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import uuid

import httpx
import psutil
import pytest

from han_solo.embedded.letta_server import EmbeddedLetta
from han_solo.embedded.ports import find_free_port
from han_solo.embedded.processes import is_alive
from han_solo.errors import EmbeddedError
from tests.contract.mcp_stub import McpStub, StubTool, serve

TOOL = StubTool("list_notes", "List the notes.", {"type": "object", "properties": {}})

ENVIRONMENT_TOOL = '''
def read_environment() -> str:
    """Return the environment of the tool.

    Returns:
        str: names and values.
    """
    import json, os
    return json.dumps(dict(os.environ))
'''


@pytest.fixture
async def client(letta_server, letta_actor):
    async with httpx.AsyncClient(
        base_url=letta_server.base_url, headers=letta_actor, timeout=120
    ) as client:
        yield client


async def register(client, url):
    config = {"mcp_server_type": "streamable_http", "server_url": url}
    name = f"server-{uuid.uuid4().hex}"
    return await client.post("/v1/mcp-servers/", json={"server_name": name, "config": config})


class TestAllowList:
    async def test_the_bridges_url_is_accepted(self, client, letta_server):
        for port in letta_server.bridge_ports:
            answer = await register(client, f"http://127.0.0.1:{port}/mcp")
            assert answer.status_code == 200, answer.text
        assert (await client.get("/v1/mcp-servers/")).status_code == 200

    @pytest.mark.parametrize(
        "url",
        [
            "http://127.0.0.1:{other}/mcp",
            "http://localhost:{port}/mcp",
            "http://127.0.0.1:{port}/other",
            "http://127.0.0.1:{port}/mcp/",
            "http://127.0.0.1:{port}/mcp?x=1",
            "https://127.0.0.1:{port}/mcp",
            "http://[::1]:{port}/mcp",
            "http://10.0.0.1:{port}/mcp",
            "http://169.254.169.254/mcp",
            "http://host.docker.internal.local:{port}/mcp",
        ],
    )
    async def test_any_other_private_one_is_still_refused(self, client, letta_server, url):
        port = letta_server.bridge_ports[0]
        answer = await register(client, url.format(port=port, other=find_free_port()))
        assert 400 <= answer.status_code < 500, answer.text
        assert (await client.get("/v1/mcp-servers/")).json() == []

    async def test_the_same_holds_for_changing_a_server(self, client, letta_server):
        made = (await register(client, letta_server.bridge_url())).json()
        for url, is_good in (
            (f"http://127.0.0.1:{find_free_port()}/mcp", False),
            (letta_server.bridge_url(1), True),
        ):
            config = {"mcp_server_type": "streamable_http", "server_url": url}
            answer = await client.patch(f"/v1/mcp-servers/{made['id']}", json={"config": config})
            assert answer.is_success is is_good, answer.text


class TestAccess:
    @pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
    async def test_without_the_password_nothing_is_told(self, letta_server, headers):
        async with httpx.AsyncClient(base_url=letta_server.base_url, headers=headers) as client:
            for path in ("/v1/agents/", "/v1/tools/", "/v1/admin/users/", "/v1/models/"):
                assert (await client.get(path)).status_code == 401

    async def test_it_listens_on_loopback_only(self, letta_server):
        process = psutil.Process(letta_server.server.pid)
        listening = {
            found.laddr[:2]
            for found in process.net_connections("tcp")
            if found.status == psutil.CONN_LISTEN
        }
        assert listening == {("127.0.0.1", letta_server.server.port)}

    async def test_the_password_is_in_no_command_line_and_no_log(self, letta_server, server_home):
        arguments = psutil.Process(letta_server.server.pid).cmdline()
        assert not any(letta_server.password in argument for argument in arguments)
        log = server_home.letta / "letta.log"
        assert "Using secure mode" in log.read_text()
        assert letta_server.password not in log.read_text()
        assert log.stat().st_mode & 0o777 == 0o600

    async def test_its_tools_inherit_nothing_of_ours(self, client, server_home, letta_server):
        source = {"source_code": ENVIRONMENT_TOOL, "args": {}, "name": "read_environment"}
        answer = (await client.post("/v1/tools/run", json=source)).json()
        seen = json.loads(answer["tool_return"])
        secret = (letta_server.password, server_home.read_secret("letta_db_password"))
        assert not any(value in seen.values() for value in secret)
        assert not {"LETTA_PG_URI", "LETTA_SERVER_PASSWORD", "HAN_SOLO_ALLOW_MCP_URLS"} & set(seen)
        assert not [name for name, value in seen.items() if "postgresql://" in value]
        assert seen["HOME"].startswith(str(server_home.letta))
        assert "USER" not in seen


class TestLife:
    @pytest.mark.deep
    async def test_a_stop_leaves_nothing_running_and_the_next_start_finds_all(
        self, client, letta_server
    ):
        async with serve(McpStub([TOOL]), letta_server.bridge_ports[2]) as stub:
            assert (await register(client, stub.url)).status_code == 200
            tools = (await client.get("/v1/tools/?limit=1000")).json()
            [tool] = [tool for tool in tools if tool["name"] == TOOL.name]
            body = {
                "name": "kept",
                "model": "openai-proxy/rehearsal",
                "include_base_tools": False,
                "tool_ids": [tool["id"]],
                "memory_blocks": [{"label": "notes", "value": "kept \U0001f426 "}],
            }
            made = (await client.post("/v1/agents/", json=body)).json()
        process = psutil.Process(letta_server.server.pid)
        family = [process, *process.children(recursive=True)]
        await letta_server.server.stop()
        assert not any(is_alive(member) for member in family)
        await letta_server.server.start()
        found = (await client.get(f"/v1/agents/{made['id']}")).json()
        assert [(tool["id"], tool["name"]) for tool in found["tools"]] == [(tool["id"], TOOL.name)]
        assert [block["value"] for block in found["memory"]["blocks"]] == ["kept \U0001f426 "]

    @pytest.mark.deep
    async def test_it_starts_after_kill_9(self, client, letta_server):
        os.kill(letta_server.server.pid, signal.SIGKILL)
        await letta_server.server.stop()
        await letta_server.server.start()
        assert (await client.get("/v1/agents/")).status_code == 200

    async def test_its_pool_outlives_a_restart_of_postgres(self, client, postgres_server):
        assert (await client.get("/v1/agents/")).status_code == 200
        await postgres_server.stop()
        await postgres_server.start()
        answers = await asyncio.gather(*(client.get("/v1/agents/") for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}

    async def test_a_taken_port_is_named(self, letta_server, tmp_path):
        with pytest.raises(EmbeddedError, match="which is kept for Letta, is in use"):
            await make(letta_server, tmp_path, port=letta_server.server.port).start()

    async def test_a_database_it_can_not_use_is_one_sentence(self, letta_server, tmp_path):
        server = make(letta_server, tmp_path)
        with pytest.raises(EmbeddedError, match="Letta's database can not be used") as caught:
            await server.start()
        assert str(tmp_path / "letta.log") in caught.value.hint
        assert not server.is_running


def make(letta_server, home, *, port=None):
    return EmbeddedLetta(
        python=letta_server.python,
        home=home,
        port=port or find_free_port(),
        pg_uri=f"postgresql://letta:x@127.0.0.1:{find_free_port()}/letta",
        password="x",
        bridge_urls=[],
        model_url=None,
        model_keys={},
    )
