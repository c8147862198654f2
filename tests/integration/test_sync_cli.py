"""``sync-tools`` as it is typed, against the real Letta and the real Postgres."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from han_solo.bridge.projection import list_tools
from han_solo.cli import sync, sync_session
from han_solo.home import Home
from han_solo.letta.gateway import LettaGateway
from han_solo.loader import load_registry
from tests.contract.actor import open_gateway
from tests.contract.mcp_stub import McpStub, StubTool, serve
from tests.integration.reconcile_fixtures import TOKEN

SPEC = """\
[agent]
name = "ren"
person = "Robin"

[model]
handle = "openai-proxy/rehearsal"

[system]
text = "You are {agent}."

[[blocks]]
label = "notes"
limit = 1000
seed = "Nothing yet."
"""

TOOLS = '''\
"""Tools of the test."""

from han_solo.context import MemoryContext
from han_solo.declare import tool


@tool(effect="read")
async def read_weather(context: MemoryContext) -> str:
    """Tell the weather."""
    return "dry"


@tool(effect="read")
async def read_place(context: MemoryContext, place: str) -> str:
    """Tell about a place.

    Args:
        place: its name.
    """
    return place


@tool(effect="write")
async def write_weather(context: MemoryContext) -> str:
    """Change the weather."""
    return "wet"
'''


@dataclass
class Shell:
    """Types ``sync-tools`` in an installation of its own."""

    monkeypatch: pytest.MonkeyPatch
    http: httpx.AsyncClient
    stub: McpStub
    home: Path
    actor: Mapping[str, str]

    def reach_letta(self, url: str | None = None, password: str | None = None) -> None:
        """Have the command act in the organisation of the test; it knows of none."""

        class Door:
            @staticmethod
            def connect(base_url: str, _password: str | None, **_options: float) -> LettaGateway:
                return open_gateway(url or base_url, self.actor, password=password)[0]

        self.monkeypatch.setattr(sync_session, "LettaGateway", Door)

    async def type(self, *words: str, answers: str | None = None) -> Result:
        """Type it; with answers there is a terminal to ask on."""
        self.monkeypatch.setattr(sync, "is_terminal", lambda: answers is not None)
        return await asyncio.to_thread(
            CliRunner().invoke, sync.build_app(), list(words), input=answers
        )

    async def agents(self) -> list[dict[str, Any]]:
        found = await self.http.get(
            "/v1/agents/?include=agent.tools&include=agent.blocks&include=agent.tags"
        )
        agents: list[dict[str, Any]] = found.raise_for_status().json()
        return agents

    async def attached(self) -> set[str]:
        (agent,) = await self.agents()
        return {tool["name"] for tool in agent["tools"]}

    async def detach(self, name: str) -> None:
        (agent,) = await self.agents()
        tool_id = next(tool["id"] for tool in agent["tools"] if tool["name"] == name)
        path = f"/v1/agents/{agent['id']}/tools/detach/{tool_id}"
        (await self.http.patch(path)).raise_for_status()


@pytest.fixture
async def shell(
    letta_server: Any,
    letta_actor: Mapping[str, str],
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Shell]:
    extension = tmp_path / "extension"
    (extension / "tools").mkdir(parents=True)
    (extension / "tools" / "weather.py").write_text(TOOLS)
    spec = tmp_path / "agent.toml"
    spec.write_text(SPEC)
    home = Home(tmp_path / "home")
    home.create()
    home.write_token("agent", TOKEN)
    port = letta_server.bridge_ports[4]
    for name, value in {
        "HAN_SOLO_HOME": home.root,
        "HAN_SOLO_DATABASE_URL": database_url,
        "HAN_SOLO_EXTENSIONS": extension,
        "HAN_SOLO_AGENT_SPEC": spec,
        "HAN_SOLO_BRIDGE_PORT": port,
        "HAN_SOLO_LOG_LEVEL": "error",
        "LETTA_BASE_URL": letta_server.base_url,
        "LETTA_SERVER_PASSWORD": letta_server.password,
    }.items():
        monkeypatch.setenv(name, str(value))
    listed = list_tools(load_registry([extension]), "agent")
    stub = McpStub([StubTool(t.name, t.description, t.input_schema) for t in listed], token=TOKEN)
    async with (
        serve(stub, port),
        httpx.AsyncClient(base_url=letta_server.base_url, headers=letta_actor, timeout=60) as http,
    ):
        opened = Shell(monkeypatch, http, stub, home.root, letta_actor)
        opened.reach_letta()
        yield opened


async def test_a_first_sync_makes_the_agent_with_all_it_is_to_have(shell: Shell) -> None:
    result = await shell.type("--yes")

    assert result.exit_code == 0, result.output
    (agent,) = await shell.agents()
    assert await shell.attached() == {tool.name for tool in shell.stub.tools}
    assert [block["value"] for block in agent["blocks"]] == ["Nothing yet."]
    assert agent["system"] == "You are ren."
    assert agent["llm_config"]["enable_reasoner"] is False
    assert agent["tags"] == ["han-solo:ren"]


async def test_a_dry_run_without_an_agent_makes_none_and_ends_with_3(shell: Shell) -> None:
    result = await shell.type("--dry-run")

    assert result.exit_code == 3
    assert "There is no agent 'ren' yet" in result.output
    assert await shell.agents() == []


async def test_a_dry_run_shows_drift_changes_nothing_and_ends_with_3(shell: Shell) -> None:
    await shell.type("--yes")
    await shell.detach("read_weather")

    result = await shell.type("--dry-run")

    assert result.exit_code == 3
    assert "attach" in result.output
    assert "read_weather" in result.output
    assert "read_weather" not in await shell.attached()


async def test_a_dry_run_of_what_is_in_sync_ends_with_0(shell: Shell) -> None:
    await shell.type("--yes")

    result = await shell.type("--dry-run")

    assert result.exit_code == 0
    assert "Nothing to do" in result.output


async def test_without_a_terminal_and_without_yes_nothing_is_applied(shell: Shell) -> None:
    await shell.type("--yes")
    await shell.detach("read_weather")

    result = await shell.type()

    assert result.exit_code == 2
    assert "--yes" in result.output
    assert "read_weather" not in await shell.attached()


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 3)])
async def test_on_a_terminal_the_answer_decides(shell: Shell, answer: str, code: int) -> None:
    await shell.type("--yes")
    await shell.detach("read_weather")

    result = await shell.type(answers=f"{answer}\n")

    assert result.exit_code == code
    assert ("read_weather" in await shell.attached()) == (answer == "y")


async def test_lettas_memory_tools_are_asked_about_apart(shell: Shell) -> None:
    await shell.type("--yes")
    (agent,) = await shell.agents()
    tools = (await shell.http.get("/v1/tools/?limit=1000")).json()
    theirs = next(tool["id"] for tool in tools if tool["name"] == "memory_insert")
    path = f"/v1/agents/{agent['id']}/tools/attach/{theirs}"
    (await shell.http.patch(path)).raise_for_status()

    kept = await shell.type(answers="n\n")
    assert kept.exit_code == 3
    assert "memory_insert" in await shell.attached()

    result = await shell.type(answers="y\ny\n")
    assert result.exit_code == 0, result.output
    assert "memory_insert" not in await shell.attached()


async def test_prune_detaches_what_is_no_longer_declared(shell: Shell) -> None:
    await shell.type("--yes")
    weather = Path(shell.home.parent / "extension" / "tools" / "weather.py")
    weather.write_text(TOOLS.partition('@tool(effect="write")')[0])
    shell.stub.tools = [tool for tool in shell.stub.tools if tool.name != "write_weather"]

    kept = await shell.type("--yes")
    assert kept.exit_code == 0
    assert "--prune" in kept.output
    assert "write_weather" in await shell.attached()

    await shell.type("--yes", "--prune")
    assert "write_weather" not in await shell.attached()
    tools = (await shell.http.get("/v1/tools/?limit=1000")).json()
    assert "write_weather" in {tool["name"] for tool in tools}


async def test_json_is_one_object_with_plan_and_outcome(shell: Shell) -> None:
    result = await shell.type("--yes", "--json")

    body = json.loads(result.stdout)
    assert body["in_sync"] is True
    assert body["outcome"]["remaining"]["steps"] == []
    assert body["outcome"]["plan"]["steps"][0]["kind"] == "register_server"

    again = json.loads((await shell.type("--dry-run", "--json")).stdout)
    assert again["plan"] == {"in_sync": True, "steps": [], "findings": [], "refusal": None}


async def test_a_cold_bridge_is_one_sentence_and_exit_2(shell: Shell) -> None:
    await shell.type("--yes")
    shell.stub.tools = []

    result = await shell.type("--yes", "--json")

    assert result.exit_code == 2
    assert json.loads(result.stdout)["plan"]["refusal"]["reason"] == "bridge_cold"
    assert "lists no tools" in result.stderr
    assert "Traceback" not in result.output


async def test_probe_runs_each_new_tool_that_reads_and_needs_nothing(shell: Shell) -> None:
    result = await shell.type("--yes", "--probe", "--json")

    probes = {probe["tool"]: probe for probe in json.loads(result.stdout)["probes"]}
    assert probes["read_weather"]["outcome"] == "worked"
    assert probes["read_place"]["words"] == "it needs place"
    assert probes["write_weather"]["words"] == "it writes"
    called = {name for name, _, _ in shell.stub.calls}
    assert "read_weather" in called
    assert called.isdisjoint({"read_place", "write_weather"})

    again = await shell.type("--yes", "--probe")
    assert "No new tools to probe" in again.output


async def test_a_probe_that_fails_ends_with_1(shell: Shell) -> None:
    answer = shell.stub._answer

    def fail_calls(message: Mapping[str, Any], agent_id: str | None) -> dict[str, Any]:
        if message["method"] == "tools/call":
            return {"content": [{"type": "text", "text": "no"}], "isError": True}
        return answer(message, agent_id)

    shell.stub._answer = fail_calls  # type: ignore[method-assign]

    result = await shell.type("--yes", "--probe")

    assert result.exit_code == 1
    assert "failed" in result.output


async def test_without_a_token_for_the_agent_it_says_how_to_get_one(shell: Shell) -> None:
    (shell.home / "tokens" / "agent").unlink()

    result = await shell.type("--yes")

    assert result.exit_code == 2
    assert "There is no token for the agent" in result.stderr


async def test_a_wrong_password_is_one_sentence_and_changes_nothing(shell: Shell) -> None:
    shell.reach_letta(password="wrong")

    result = await shell.type("--yes")

    assert result.exit_code == 2
    assert "password" in result.stderr
    assert await shell.agents() == []


async def test_a_letta_that_is_away_is_one_sentence(shell: Shell) -> None:
    shell.reach_letta("http://127.0.0.1:9")

    result = await shell.type("--yes")

    assert result.exit_code == 2
    assert "http://127.0.0.1:9" in result.stderr


async def test_an_unreadable_spec_says_line_and_column(shell: Shell) -> None:
    spec = shell.home.parent / "agent.toml"
    spec.write_text(SPEC.replace("limit = 1000", "limit = 'many'"))

    result = await shell.type("--yes")

    assert result.exit_code == 2
    assert "agent.toml:13:1: blocks.limit" in result.stderr.replace("\n", "")


async def test_an_agent_id_that_letta_does_not_know_stops_everything(shell: Shell) -> None:
    shell.monkeypatch.setenv("HAN_SOLO_AGENT_ID", "agent-00000000-0000-4000-8000-000000000000")

    result = await shell.type("--yes")

    assert result.exit_code == 2
    assert "has no agent agent-00000000" in result.stderr.replace("\n", "")
    assert await shell.agents() == []


async def test_with_letta_away_a_known_agent_is_never_said_to_be_gone(shell: Shell) -> None:
    await shell.type("--yes")
    shell.reach_letta("http://127.0.0.1:9")

    result = await shell.type("--yes")

    assert result.exit_code == 2
    assert "has no agent" not in result.stderr
    shell.reach_letta()
    assert len(await shell.agents()) == 1


async def test_a_database_newer_than_the_code_is_left_alone(
    shell: Shell, database_url: str
) -> None:
    await shell.type("--yes")
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "INSERT INTO han_solo.migrations (version, name, checksum, applied_by) "
        "VALUES (9999, 'from_the_future', repeat('0', 64), '99.0')"
    )

    result = await shell.type("--yes")

    runs = await connection.fetchval("SELECT count(*) FROM han_solo.reconcile_runs")
    await connection.close()
    assert result.exit_code == 2
    assert "9999" in result.stderr
    assert runs == 1


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("async def read_place", "async def read_weather", "Two tools are named 'read_weather'"),
        (", place: str", ", place", "has no annotation for place"),
        ('"""Tell the weather."""', "pass", "has no docstring"),
        ("context: MemoryContext) -> str:", "context: OperatorContext) -> str:", "OperatorContext"),
        ("async def read_weather", "async def send_message", "name of a Letta built-in"),
        ("from han_solo.declare import tool", "from nowhere import tool", "does not load"),
    ],
)
async def test_a_declaration_that_can_not_be_used_stops_everything(
    shell: Shell, old: str, new: str, sentence: str
) -> None:
    path = shell.home.parent / "extension" / "tools" / "weather.py"
    text = TOOLS.replace("import MemoryContext", "import MemoryContext, OperatorContext")
    path.write_text(text.replace(old, new, 1))

    result = await shell.type("--yes")

    assert result.exit_code == 2
    assert sentence in result.stderr.replace("\n", " ")
    assert "weather.py" in result.stderr
    assert await shell.agents() == []


async def test_a_dry_run_takes_no_agent_over(shell: Shell, database_url: str) -> None:
    await shell.type("--yes")
    (stored,) = await shell.agents()
    (await shell.http.delete(f"/v1/agents/{stored['id']}")).raise_for_status()
    made = await shell.http.post(
        "/v1/agents/", json={"name": "other", "model": "openai-proxy/rehearsal"}
    )
    shell.monkeypatch.setenv("HAN_SOLO_AGENT_ID", made.raise_for_status().json()["id"])

    result = await shell.type("--dry-run")

    connection = await asyncpg.connect(database_url)
    known = await connection.fetchval("SELECT agent_id FROM han_solo.agents WHERE name = 'ren'")
    await connection.close()
    assert result.exit_code == 3, result.output
    assert known == stored["id"]
