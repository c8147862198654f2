"""Tools and MCP servers on the real Letta: complete lists, kept ids, tokens that change."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import httpx
import pytest

from han_solo.errors import (
    BridgeUrlRefused,
    LettaConflict,
    LettaNotFound,
    LettaRefused,
    LettaUnavailable,
)
from han_solo.letta import paging
from han_solo.letta.gateway import LettaGateway
from han_solo.letta.views import AgentView, ToolView
from tests.contract.actor import ActorTransport
from tests.contract.mcp_stub import McpStub, StubTool, serve

SERVER = "han-solo"
TOKEN = "hs_test_token"
TEXT_ARGUMENT = {"type": "object", "properties": {"a": {"type": "string"}}}


def _stub(count: int, **more: Any) -> McpStub:
    tools = [StubTool(f"tool_{n:02}", f"Does {n}.", TEXT_ARGUMENT) for n in range(count)]
    return McpStub(tools, **more)


async def _ours(gateway: LettaGateway) -> dict[str, ToolView]:
    return {tool.name: tool for tool in await gateway.fetch_tools() if tool.mcp_server == SERVER}


async def test_78_attached_tools_are_all_seen_in_one_read(
    letta_server: Any, gateway: LettaGateway, transport: ActorTransport, agent: AgentView
) -> None:
    async with serve(_stub(78), letta_server.bridge_ports[0]) as stub:
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
    tools = await _ours(gateway)
    assert len(tools) == 78
    await asyncio.gather(*(gateway.attach_tool(agent.id, tool.id) for tool in tools.values()))
    transport.sent.clear()
    seen = await gateway.fetch_agent(agent.id)
    assert {tool.id for tool in seen.tools} == {tool.id for tool in tools.values()}
    assert len(transport.sent) == 1


async def test_registering_takes_every_tool_and_attaches_none(
    letta_server: Any, gateway: LettaGateway, agent: AgentView
) -> None:
    async with serve(_stub(70, token=TOKEN), letta_server.bridge_ports[0]) as stub:
        server = await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
    assert (server.name, server.url, server.token) == (SERVER, stub.url, TOKEN)
    tools = await _ours(gateway)
    assert len(tools) == 70
    assert {tool.tool_type for tool in tools.values()} == {"external_mcp"}
    assert {tool.mcp_server_id for tool in tools.values()} == {server.id}
    assert (await gateway.fetch_agent(agent.id)).tools == ()


@pytest.mark.parametrize("token", [None, "another token"], ids=["bridge away", "token refused"])
async def test_registering_succeeds_without_tools_when_the_bridge_does_not_answer(
    letta_server: Any, gateway: LettaGateway, token: str | None
) -> None:
    url = letta_server.bridge_url(0)
    if token is None:
        await gateway.register_mcp_server(SERVER, url, TOKEN)
    else:
        async with serve(_stub(3, token=token), letta_server.bridge_ports[0]):
            await gateway.register_mcp_server(SERVER, url, TOKEN)
    assert [server.name for server in await gateway.fetch_mcp_servers()] == [SERVER]
    assert await _ours(gateway) == {}


async def test_a_server_name_is_taken_once(letta_server: Any, gateway: LettaGateway) -> None:
    url = letta_server.bridge_url(0)
    await gateway.register_mcp_server(SERVER, url, TOKEN)
    with pytest.raises(LettaConflict, match="already") as caught:
        await gateway.register_mcp_server(SERVER, url, TOKEN)
    assert TOKEN not in str(caught.value)


async def test_a_server_name_with_a_colon_is_refused(gateway: LettaGateway) -> None:
    with pytest.raises(LettaRefused, match="colon"):
        await gateway.register_mcp_server("a:b", "https://bridge.example/mcp", TOKEN)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/mcp", "http://localhost:1/mcp", "http://10.0.0.1/mcp"]
)
async def test_a_private_address_is_refused_and_nothing_is_stored(
    gateway: LettaGateway, url: str
) -> None:
    with pytest.raises(BridgeUrlRefused, match="han-solo letta serve") as caught:
        await gateway.register_mcp_server(SERVER, url, TOKEN)
    assert TOKEN not in str(caught.value)
    assert await gateway.fetch_mcp_servers() == ()


async def test_one_stored_private_address_hides_the_list_and_an_update_mends_it(
    letta_server: Any, postgres_server: Any, gateway: LettaGateway
) -> None:
    server = await gateway.register_mcp_server(SERVER, letta_server.bridge_url(0), TOKEN)
    connection = await asyncpg.connect(postgres_server.url("letta"))
    try:
        await connection.execute(
            "UPDATE mcp_server SET server_url = $1 WHERE id = $2",
            "http://127.0.0.1:1/mcp",
            server.id,
        )
    finally:
        await connection.close()
    with pytest.raises(BridgeUrlRefused, match="hides them all"):
        await gateway.fetch_mcp_servers()
    mended = await gateway.update_mcp_server(SERVER, url=letta_server.bridge_url(1), token=None)
    assert mended.url == letta_server.bridge_url(1)
    assert mended.token == TOKEN


async def test_an_update_changes_url_and_token_and_leaves_the_tools(
    letta_server: Any, gateway: LettaGateway, agent: AgentView
) -> None:
    async with serve(_stub(5), letta_server.bridge_ports[0]) as stub:
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
        before = await _ours(gateway)
        await gateway.attach_tool(agent.id, before["tool_01"].id)
        stub.tokens_seen.clear()
        changed = await gateway.update_mcp_server(
            SERVER, url=letta_server.bridge_url(1), token="hs_new_token"
        )
        assert stub.tokens_seen == []
    assert (changed.url, changed.token) == (letta_server.bridge_url(1), "hs_new_token")
    assert await _ours(gateway) == before
    assert len((await gateway.fetch_agent(agent.id)).tools) == 1
    async with serve(_stub(5), letta_server.bridge_ports[1]) as stub:
        await gateway.register_tool(SERVER, "tool_01")
        assert set(stub.tokens_seen) == {"Bearer hs_new_token"}


async def test_lettas_newer_update_call_would_keep_the_old_token(
    letta_server: Any, gateway: LettaGateway, http: httpx.AsyncClient
) -> None:
    server = await gateway.register_mcp_server(SERVER, letta_server.bridge_url(0), TOKEN)
    config = {
        "mcp_server_type": "streamable_http",
        "server_url": letta_server.bridge_url(0),
        "auth_header": "Authorization",
        "auth_token": "hs_new_token",
    }
    answer = await http.patch(f"/v1/mcp-servers/{server.id}", json={"config": config})
    assert answer.status_code == 200
    assert [found.token for found in await gateway.fetch_mcp_servers()] == [TOKEN]


async def test_updating_a_server_that_is_not_there_is_not_found(
    letta_server: Any, gateway: LettaGateway
) -> None:
    with pytest.raises(LettaNotFound):
        await gateway.update_mcp_server("absent", url=letta_server.bridge_url(0), token=TOKEN)


async def test_a_changed_tool_keeps_its_id_and_its_agents_past_the_50th(
    letta_server: Any, gateway: LettaGateway, agent: AgentView
) -> None:
    other = await gateway.create_agent(name="other", model="openai-proxy/rehearsal")
    stub = _stub(60)
    async with serve(stub, letta_server.bridge_ports[0]):
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
        before = await _ours(gateway)
        for name in ("tool_00", "tool_59"):
            for holder in (agent, other):
                await gateway.attach_tool(holder.id, before[name].id)
        new = {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
        stub.tools = [StubTool(tool.name, "Changed.", new) for tool in stub.tools]
        for name in ("tool_00", "tool_59"):
            changed = await gateway.register_tool(SERVER, name)
            assert changed.id == before[name].id
            assert changed.description == "Changed."
    after = await _ours(gateway)
    assert {name for name in after if after[name] != before[name]} == {"tool_00", "tool_59"}
    for holder in (agent, other):
        seen = await gateway.fetch_agent(holder.id)
        assert {tool.name: tool.description for tool in seen.tools} == {
            "tool_00": "Changed.",
            "tool_59": "Changed.",
        }


async def test_a_tool_that_was_never_registered_is_added(
    letta_server: Any, gateway: LettaGateway
) -> None:
    stub = _stub(2)
    async with serve(stub, letta_server.bridge_ports[0]):
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
        stub.tools = [*stub.tools, StubTool("newcomer", "New.", {"type": "object"})]
        added = await gateway.register_tool(SERVER, "newcomer")
    assert (await _ours(gateway))["newcomer"] == added


async def test_nothing_is_lost_when_a_tool_can_not_be_registered(
    letta_server: Any, gateway: LettaGateway
) -> None:
    stub = _stub(3)
    async with serve(stub, letta_server.bridge_ports[0]):
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
        before = await _ours(gateway)
        with pytest.raises(LettaUnavailable, match="does not list it"):
            await gateway.register_tool(SERVER, "absent")
        stub.token = "another token"
        with pytest.raises(LettaUnavailable, match="refuses the token"):
            await gateway.register_tool(SERVER, "tool_00")
    with pytest.raises(LettaUnavailable, match="does not answer Letta"):
        await gateway.register_tool(SERVER, "tool_00")
    with pytest.raises(LettaRefused, match="absent-server"):
        await gateway.register_tool("absent-server", "tool_00")
    assert await _ours(gateway) == before


async def test_the_request_after_a_500_finds_an_open_connection(
    letta_server: Any, gateway: LettaGateway
) -> None:
    block = await gateway.create_block("notes", "0", limit=100)
    async with serve(_stub(1), letta_server.bridge_ports[0]) as stub:
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
        for turn in range(10):
            with pytest.raises(LettaUnavailable):
                await gateway.register_tool(SERVER, "absent")
            await gateway.write_block(block.id, str(turn))
    assert (await gateway.fetch_block(block.id)).value == "9"


async def test_pages_add_up_to_the_whole_list(
    letta_server: Any, gateway: LettaGateway, http: httpx.AsyncClient
) -> None:
    async with serve(_stub(70), letta_server.bridge_ports[0]) as stub:
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)

    async def fetch_page(rows: int, after: str | None) -> object:
        params = {"limit": rows} | ({"after": after} if after else {})
        return (await http.get("/v1/tools/", params=params)).json()

    async def fetch_count() -> object:
        return (await http.get("/v1/tools/count")).json()

    whole = {tool.id for tool in await gateway.fetch_tools()}
    paged = await paging.fetch_all("tool", fetch_page, fetch_count, page_rows=7)
    assert {row["id"] for row in paged} == whole
    assert len(whole) > 70


async def test_a_built_in_name_over_mcp_takes_the_row_over(
    letta_server: Any, gateway: LettaGateway
) -> None:
    (before,) = [tool for tool in await gateway.fetch_tools() if tool.name == "memory_insert"]
    assert before.is_letta_builtin
    assert before.mcp_server is None
    stub = McpStub([StubTool("memory_insert", "Ours.", TEXT_ARGUMENT)])
    async with serve(stub, letta_server.bridge_ports[0]):
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
    after = (await _ours(gateway))["memory_insert"]
    assert after.id == before.id
    assert not after.is_letta_builtin


async def test_a_custom_tool_over_ours_is_seen_as_not_ours(
    letta_server: Any, gateway: LettaGateway, http: httpx.AsyncClient
) -> None:
    async with serve(_stub(1), letta_server.bridge_ports[0]) as stub:
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
    source = 'def tool_00(a: str) -> str:\n    """Do it.\n\n    Args:\n        a: x\n    """\n'
    answer = await http.put("/v1/tools/", json={"source_code": source + "    return a\n"})
    assert answer.status_code == 200
    (tool,) = [tool for tool in await gateway.fetch_tools() if tool.name == "tool_00"]
    assert (tool.tool_type, tool.mcp_server) == ("custom", None)


async def test_attaching_and_detaching_twice_changes_nothing(
    letta_server: Any, gateway: LettaGateway, agent: AgentView
) -> None:
    async with serve(_stub(1), letta_server.bridge_ports[0]) as stub:
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
    tool = (await _ours(gateway))["tool_00"]
    for _ in range(2):
        await gateway.attach_tool(agent.id, tool.id)
    assert [held.id for held in (await gateway.fetch_agent(agent.id)).tools] == [tool.id]
    for _ in range(2):
        await gateway.detach_tool(agent.id, tool.id)
    assert (await gateway.fetch_agent(agent.id)).tools == ()
    assert "tool_00" in await _ours(gateway)


async def test_attaching_an_unknown_tool_is_not_found(
    gateway: LettaGateway, agent: AgentView
) -> None:
    with pytest.raises(LettaNotFound):
        await gateway.attach_tool(agent.id, "tool-00000000-0000-4000-8000-000000000000")


async def test_a_tool_is_run_as_the_agent_and_without_its_model(
    letta_server: Any, gateway: LettaGateway, agent: AgentView
) -> None:
    async with serve(_stub(1), letta_server.bridge_ports[0]) as stub:
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
        (tool,) = (await _ours(gateway)).values()
        await gateway.attach_tool(agent.id, tool.id)
        run = await gateway.run_tool(agent.id, "tool_00", {"a": "x"})
    assert (run.succeeded, run.text) == (True, "tool_00 was called")
    assert stub.calls == [("tool_00", {"a": "x"}, agent.id)]


async def test_a_tool_that_can_not_be_run_has_failed(
    letta_server: Any, gateway: LettaGateway, agent: AgentView
) -> None:
    async with serve(_stub(1), letta_server.bridge_ports[0]) as stub:
        await gateway.register_mcp_server(SERVER, stub.url, TOKEN)
        (tool,) = (await _ours(gateway)).values()
        await gateway.attach_tool(agent.id, tool.id)
    run = await gateway.run_tool(agent.id, "tool_00", {"a": "x"})
    assert not run.succeeded
    with pytest.raises(LettaNotFound):
        await gateway.run_tool(agent.id, "tool_01", {})
