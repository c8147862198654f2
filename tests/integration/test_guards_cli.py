"""``han-solo guards`` as it is typed, against the real Letta and the real Postgres."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from han_solo.bridge.projection import list_tools
from han_solo.cli import guard_session, guards, sync, sync_session
from han_solo.daemon import requests
from han_solo.daemon.leadership import Leadership
from han_solo.home import Home
from han_solo.letta.gateway import LettaGateway
from han_solo.loader import load_registry
from tests.contract.actor import open_gateway
from tests.contract.mcp_stub import McpStub, StubTool, serve
from tests.integration.reconcile_fixtures import TOKEN
from tests.integration.store_fixtures import migrated

MODEL = "openai-proxy/rehearsal"
SPEC = f"""\
[agent]
name = "ren"
person = "Robin"

[model]
handle = "{MODEL}"
temperature = 0.3

[system]
text = "You are {{agent}}."
"""

GUARD = '''\
"""A guard of the operator's own."""

from han_solo import CheckContext, Finding, guard


@guard(every_s=5, incident="described")
async def described(context: CheckContext) -> tuple[Finding, ...]:
    """Find an agent without a description."""
    if (await context.agent()).description:
        return ()
    return (Finding("description", "It has [none].", "Give it one."),)
'''


@dataclass
class Shell:
    """Types ``han-solo guards`` in an installation of its own."""

    http: httpx.AsyncClient
    agent_id: str
    database_url: str
    extension: Path
    monkeypatch: pytest.MonkeyPatch

    async def type(self, *words: str) -> Result:
        app = typer.Typer()
        app.add_typer(guards.app, name="guards")
        app.command("other")(lambda: None)  # a lone group would be run without its name
        return await asyncio.to_thread(CliRunner().invoke, app, ["guards", *words])

    async def ask(self, *words: str, code: int = 0) -> Any:
        result = await self.type(*words, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    async def patch(self, **fields: Any) -> None:
        """Change the agent behind our back."""
        answer = await self.http.patch(f"/v1/agents/{self.agent_id}", json=fields)
        answer.raise_for_status()

    async def config(self) -> dict[str, Any]:
        answer = await self.http.get(f"/v1/agents/{self.agent_id}")
        config: dict[str, Any] = answer.raise_for_status().json()["llm_config"]
        return config


def door(actor: Mapping[str, str], url: str | None = None) -> Any:
    """Have the commands act in the organisation of the test; they know of none."""

    class Door:
        @staticmethod
        def connect(base_url: str, _password: str | None, **_options: float) -> LettaGateway:
            return open_gateway(url or base_url, actor)[0]

    return Door


@pytest.fixture
async def shell(
    letta_server: Any,
    letta_actor: Mapping[str, str],
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Shell]:
    extension = tmp_path / "extension"
    (extension / "guards").mkdir(parents=True)
    (extension / "guards" / "described.py").write_text(GUARD)
    (extension / "docs" / "incidents").mkdir(parents=True)
    (extension / "docs" / "incidents" / "described.md").write_text("# Nobody knew who it was\n")
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
        "COLUMNS": "100",
    }.items():
        monkeypatch.setenv(name, str(value))
    for module in (guard_session, sync_session):
        monkeypatch.setattr(module, "LettaGateway", door(letta_actor))
    listed = list_tools(load_registry([extension]), "agent")
    stub = McpStub([StubTool(t.name, t.description, t.input_schema) for t in listed], token=TOKEN)
    async with (
        serve(stub, port),
        httpx.AsyncClient(base_url=letta_server.base_url, headers=letta_actor, timeout=60) as http,
    ):
        made = await asyncio.to_thread(CliRunner().invoke, sync.build_app(), ["--yes", "--json"])
        assert made.exit_code == 0, made.output
        agent_id = json.loads(made.stdout)["outcome"]["agent_id"]
        yield Shell(http, agent_id, database_url, extension, monkeypatch)


async def test_a_change_behind_our_back_is_found_explained_repaired_and_kept(shell: Shell) -> None:
    never = await shell.ask("list")
    assert {guard["name"] for guard in never["guards"]} > {"reasoner_off", "described"}
    assert all(guard["last_run"] is None for guard in never["guards"])
    before = await shell.config()
    await shell.patch(model=MODEL)
    assert (await shell.config())["enable_reasoner"] is True

    found = await shell.type("run", "reasoner_off", "model_settings")
    assert found.exit_code == 3
    assert "enable_reasoner is True in Letta and False in the spec" in found.stdout
    assert "temperature is 1.0 in Letta and 0.3 in the spec" in found.stdout
    assert "Can be repaired: han-solo guards run --repair reasoner_off" in found.stdout
    assert "2 guards looked; 2 open." in found.stderr

    listed = await shell.ask("list", code=3)
    (row,) = [guard for guard in listed["guards"] if guard["name"] == "reasoner_off"]
    assert [finding["severity"] for finding in row["open"]] == ["critical"]
    shown = await shell.type("list")
    assert shown.exit_code == 3
    assert "critical  reasoner_off  since" in shown.stdout

    repaired = await shell.ask("run", "--repair", "reasoner_off", "model_settings")
    outcomes = {report["guard"]: report["outcome"] for report in repaired["guards"]}
    assert outcomes == {"reasoner_off": "repaired", "model_settings": "clear"}
    assert repaired["epoch"] == 1
    assert await shell.config() == {**before, "max_reasoning_tokens": 0}

    history = await shell.ask("history", "reasoner_off")
    (finding,), (remedy,) = history["findings"], history["remedies"]
    assert finding["resolved_at"] is not None
    assert remedy["finding_ids"] == [finding["id"]]
    assert remedy["outcome"] == "done"
    told = (await shell.type("history")).stdout
    assert "repaired: Put back in llm_config alone" in told
    assert (await shell.ask("list"))["error"] is None


async def test_all_guards_of_a_new_agent_look_and_none_is_blind(shell: Shell) -> None:
    result = await shell.ask("run", code=3)  # the operator's own guard misses a description
    blind = [report for report in result["guards"] if report["outcome"] == "blind"]
    assert blind == []
    open_ = {report["guard"] for report in result["guards"] if report["findings"]}
    assert "described" in open_
    assert open_ <= {"described", "server_version"}


async def test_from_a_terminal_nothing_is_repaired_while_another_leads(shell: Shell) -> None:
    await shell.patch(model=MODEL)
    shell.monkeypatch.setattr(requests, "WAIT_S", 1.0)  # this leader answers nobody
    async with (
        migrated(shell.database_url) as db,
        Leadership(db, "ren", holder="the daemon on the mill").try_lead(),
    ):
        result = await shell.type("run", "--repair", "reasoner_off")
        as_json = await shell.ask("run", "--repair", "reasoner_off", code=3)
    assert result.exit_code == 3
    assert "the daemon on the mill leads" in result.stderr
    assert (as_json["epoch"], as_json["leader"]) == (None, "the daemon on the mill")
    assert (await shell.config())["enable_reasoner"] is True


async def test_a_guard_of_the_operators_own_is_run_and_explained(shell: Shell) -> None:
    result = await shell.type("run", "described")
    assert result.exit_code == 3
    assert "warning: It has [none]." in result.stdout
    explained = await shell.type("explain", "described")
    assert explained.exit_code == 0
    assert "Find an agent without a description." in explained.stdout
    assert "# Nobody knew who it was" in explained.stdout
    assert (await shell.ask("explain", "reasoner_off"))["page"].startswith("# A model switch")


async def test_what_is_off_is_neither_run_nor_counted(shell: Shell) -> None:
    assert (await shell.type("run", "described")).exit_code == 3
    shell.monkeypatch.setenv("HAN_SOLO_GUARD_MODES", "described=off")
    assert (await shell.ask("list"))["error"] is None
    reports = (await shell.ask("run"))["guards"]
    assert "described" not in {report["guard"] for report in reports}
    assert "* set in HAN_SOLO_GUARD_MODES." in (await shell.type("list")).stdout


async def test_a_letta_that_is_away_makes_guards_blind_and_closes_nothing(
    shell: Shell, letta_actor: Mapping[str, str]
) -> None:
    await shell.patch(model=MODEL)
    assert (await shell.type("run", "reasoner_off")).exit_code == 3
    away = door(letta_actor, "http://127.0.0.1:9")
    shell.monkeypatch.setattr(guard_session, "LettaGateway", away)
    blind = await shell.ask("run", "reasoner_off", code=3)
    assert blind["guards"][0]["outcome"] == "blind"
    shown = await shell.type("run", "described")
    assert shown.exit_code == 1
    assert "? described  could not look" in shown.stdout
    assert "1 guards: 0 looked, 1 could not; 0 open." in shown.stderr


async def test_a_database_that_is_away_leaves_the_list_of_what_is_declared(shell: Shell) -> None:
    shell.monkeypatch.setenv("HAN_SOLO_DATABASE_URL", "postgresql://x:y@127.0.0.1:9/z")
    listed = await shell.type("list")
    assert listed.exit_code == 1
    assert "reasoner_off" in listed.stdout
    assert "127.0.0.1:9" in listed.stderr
    as_json = await shell.ask("list", code=1)
    assert "127.0.0.1:9" in as_json["error"]
    assert (await shell.type("run")).exit_code == 2


async def test_an_unknown_guard_is_said_with_the_nearest_name(shell: Shell) -> None:
    for words in (("run", "reasoner_of"), ("explain", "reasoner_of"), ("history", "reasoner_of")):
        result = await shell.type(*words)
        assert result.exit_code == 2
        assert "There is no guard 'reasoner_of'." in result.stderr
        assert "Did you mean reasoner_off?" in result.stderr
