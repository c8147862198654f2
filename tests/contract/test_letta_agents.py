"""Agents on the real Letta: made bare, changed one field at a time, gone only when confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from han_solo.embedded.ports import find_free_port
from han_solo.errors import (
    AgentGone,
    LettaConflict,
    LettaRefused,
    LettaUnauthorized,
    LettaUnavailable,
)
from han_solo.letta.gateway import LettaGateway
from han_solo.letta.views import AgentView
from tests.contract.actor import open_gateway
from tests.contract.conftest import MODEL
from tests.floors import OpenFloor

ABSENT_AGENT = "agent-00000000-0000-4000-8000-000000000000"
ABSENT_TOOL = "tool-00000000-0000-4000-8000-000000000000"


async def test_a_server_tells_its_version_and_models(gateway: LettaGateway) -> None:
    assert (await gateway.health()).version == "0.16.8"
    assert MODEL in {model.handle for model in await gateway.fetch_models()}
    assert await gateway.fetch_embedding_handles()


async def test_a_new_agent_holds_nothing_of_lettas_own(gateway: LettaGateway) -> None:
    block = await gateway.create_block("notes", "seed", limit=500, description="d")
    made = await gateway.create_agent(
        name="ren",
        model=MODEL,
        system="You are Ren.",
        description="A test.",
        timezone="Europe/Zurich",
        block_ids=[block.id],
        tags=["han-solo"],
    )
    assert (made.tools, made.tool_rules) == ((), ())
    assert made.blocks == (block,)
    assert made.tags == ("han-solo",)
    assert made.system == "You are Ren."
    assert await gateway.fetch_agent(made.id) == made


async def test_the_config_alone_is_changed_and_nothing_else(gateway: LettaGateway) -> None:
    tools = {tool.name: tool.id for tool in await gateway.fetch_tools()}
    before = await gateway.create_agent(
        name="ren",
        model=MODEL,
        tool_ids=[tools["conversation_search"], tools["web_search"]],
        tags=["kept"],
    )
    wanted = {**before.llm_config, "context_window": 20_000, "max_tokens": 2_000}
    after = await gateway.patch_llm_config(before.id, wanted)
    assert after.llm_config == wanted
    assert after.tools == before.tools
    assert (after.tags, after.system, after.blocks) == (before.tags, before.system, before.blocks)
    assert await gateway.fetch_agent(before.id) == after


async def test_a_partial_config_is_refused(gateway: LettaGateway, agent: AgentView) -> None:
    partial = {key: agent.llm_config[key] for key in ("model", "context_window")}
    with pytest.raises(LettaRefused, match="handle"):
        await gateway.patch_llm_config(agent.id, partial)
    assert await gateway.fetch_agent(agent.id) == agent


async def test_the_tool_set_alone_is_changed_and_nothing_else(
    gateway: LettaGateway, agent: AgentView
) -> None:
    tools = {tool.name: tool.id for tool in await gateway.fetch_tools()}
    after = await gateway.patch_tool_ids(agent.id, [tools["web_search"]])
    assert [tool.name for tool in after.tools] == ["web_search"]
    assert after.llm_config == agent.llm_config
    assert (await gateway.patch_tool_ids(agent.id, [])).tools == ()


async def test_an_unknown_tool_in_the_set_changes_nothing(
    gateway: LettaGateway, agent: AgentView
) -> None:
    tools = {tool.name: tool.id for tool in await gateway.fetch_tools()}
    held = await gateway.patch_tool_ids(agent.id, [tools["web_search"]])
    with pytest.raises(LettaConflict):
        await gateway.patch_tool_ids(agent.id, [tools["run_code"], ABSENT_TOOL])
    assert (await gateway.fetch_agent(agent.id)).tools == held.tools


async def test_rules_prompt_name_and_tags_are_changed_and_read_back(
    gateway: LettaGateway, agent: AgentView
) -> None:
    rule = {"type": "max_count_per_step", "tool_name": "web_search", "max_count_limit": 2}
    ruled = await gateway.patch_tool_rules(agent.id, [rule])
    assert [(r["type"], r["tool_name"]) for r in ruled.tool_rules] == [
        ("max_count_per_step", "web_search")
    ]
    assert (await gateway.patch_system(agent.id, "New words.")).system == "New words."
    assert (await gateway.patch_name(agent.id, "ren-2")).name == "ren-2"
    assert sorted((await gateway.add_tags(agent.id, ["a", "b"])).tags) == ["a", "b"]
    after = await gateway.add_tags(agent.id, ["c"])
    assert sorted(after.tags) == ["a", "b", "c"]
    assert after.llm_config == agent.llm_config


async def test_all_agents_of_a_name_are_found(gateway: LettaGateway) -> None:
    made = {(await gateway.create_agent(name="twin", model=MODEL)).id for _ in range(2)}
    await gateway.create_agent(name="twin 2", model=MODEL)
    assert {agent.id for agent in await gateway.find_agents("twin")} == made
    assert await gateway.find_agents("nobody") == ()


async def test_an_agent_that_never_was_is_gone(gateway: LettaGateway) -> None:
    for call in (
        gateway.fetch_agent(ABSENT_AGENT),
        gateway.patch_tool_ids(ABSENT_AGENT, []),
        gateway.attach_tool(ABSENT_AGENT, ABSENT_TOOL),
        gateway.send_message(OpenFloor(ABSENT_AGENT), "hello"),
    ):
        with pytest.raises(AgentGone, match=ABSENT_AGENT):
            await call


async def test_what_is_no_agent_id_is_refused_and_not_gone(gateway: LettaGateway) -> None:
    with pytest.raises(LettaRefused, match="should match pattern"):
        await gateway.fetch_agent("ren")


async def test_a_wrong_password_is_told_and_never_shown(
    letta_server: Any, letta_actor: Mapping[str, str], agent: AgentView
) -> None:
    gateway, _ = open_gateway(letta_server.base_url, letta_actor, password="wrong-secret")
    async with gateway:
        assert (await gateway.health()).status == "ok"
        for call in (
            gateway.fetch_agent(agent.id),
            gateway.fetch_tools(),
            gateway.send_message(OpenFloor(agent.id), "hello"),
        ):
            with pytest.raises(LettaUnauthorized, match="refuses the password") as caught:
                await call
            assert "wrong-secret" not in str(caught.value)


async def test_a_server_that_is_away_is_unknown_and_never_gone(
    letta_actor: Mapping[str, str], agent: AgentView
) -> None:
    gateway, _ = open_gateway(f"http://127.0.0.1:{find_free_port()}", letta_actor)
    async with gateway:
        for call in (
            gateway.fetch_agent(agent.id),
            gateway.send_message(OpenFloor(agent.id), "hello"),
        ):
            with pytest.raises(LettaUnavailable, match="can not be reached"):
                await call


async def test_another_path_of_the_server_is_unknown_and_never_gone(
    letta_server: Any, letta_actor: Mapping[str, str], agent: AgentView
) -> None:
    gateway, _ = open_gateway(f"{letta_server.base_url}/elsewhere", letta_actor)
    async with gateway:
        with pytest.raises(LettaUnavailable, match="is not Letta"):
            await gateway.fetch_agent(agent.id)
