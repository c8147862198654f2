"""``switch-model`` and ``han-solo providers`` as they are typed, against real servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from han_solo.cli import providers, switch_model, switch_session
from han_solo.home import Home
from han_solo.letta.gateway import LettaGateway
from tests.contract.actor import open_gateway
from tests.integration.switch_fixtures import (
    KEY,
    SECOND,
    SILENT,
    SwitchWorld,
    open_switch_world,
    run_model,
)

SPEC = """\
[agent]
name = "ren"
person = "Robin"

[model]
handle = "openai-proxy/rehearsal"
"""


@dataclass
class Shell:
    """Types commands in an installation of its own."""

    world: SwitchWorld
    monkeypatch: pytest.MonkeyPatch
    spec: Path

    async def type(
        self, *words: str, app: typer.Typer | None = None, answers: str | None = None
    ) -> Result:
        """Type it; with answers there is a terminal to ask on."""
        self.monkeypatch.setattr(switch_model, "is_terminal", lambda: answers is not None)
        return await asyncio.to_thread(
            CliRunner().invoke, app or switch_model.build_app(), list(words), input=answers
        )

    async def type_providers(self, *words: str, stdin: str = "") -> Result:
        return await self.type(*words, app=providers.app, answers=stdin)


@pytest.fixture
async def shell(
    letta_server: Any,
    letta_actor: Mapping[str, str],
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Shell]:
    spec = tmp_path / "agent.toml"
    spec.write_text(SPEC)
    Home(tmp_path / "home").create()
    for name, value in {
        "HAN_SOLO_HOME": tmp_path / "home",
        "HAN_SOLO_DATABASE_URL": database_url,
        "HAN_SOLO_AGENT_SPEC": spec,
        "HAN_SOLO_LOG_LEVEL": "error",
        "COLUMNS": "200",
        "LETTA_BASE_URL": letta_server.base_url,
    }.items():
        monkeypatch.setenv(name, str(value))

    class Door:
        @staticmethod
        def connect(base_url: str, _password: str | None, **_options: float) -> LettaGateway:
            return open_gateway(base_url, letta_actor)[0]

    monkeypatch.setattr(switch_session, "LettaGateway", Door)
    monkeypatch.setattr(providers, "_connect", lambda: Door.connect(letta_server.base_url, None))
    async with open_switch_world(letta_server, letta_actor, database_url) as world:
        yield Shell(world, monkeypatch, spec)


async def test_a_dry_run_shows_both_plans_changes_nothing_and_ends_with_3(shell: Shell) -> None:
    before = await shell.world.whole()
    result = await shell.type(SECOND, "--dry-run")
    assert result.exit_code == 3, result.output
    assert "Plan 1 for ren: llm_config alone" in result.output
    assert "Plan 2: tool_ids alone" in result.output
    assert "always off, explicitly" in result.output
    assert await shell.world.whole() == before
    assert await shell.world.services.journal.load() == ()


@pytest.mark.deep
async def test_a_dry_run_that_would_change_nothing_ends_with_0(shell: Shell) -> None:
    result = await shell.type("openai-proxy/rehearsal", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "Nothing to do" in result.output


async def test_a_switch_tells_what_the_spec_is_to_say_and_goes_back(shell: Shell) -> None:
    before = await shell.world.whole()
    result = await shell.type(SECOND, answers="y\n")
    assert result.exit_code == 0, result.output
    assert f'Put handle = "{SECOND}" into [model]' in " ".join(result.output.split())
    assert (await shell.world.agent()).llm_config["handle"] == SECOND
    result = await shell.type("--back", "--yes")
    assert result.exit_code == 0, result.output
    assert await shell.world.whole() == before
    result = await shell.type("--history")
    assert result.output.count("done") == 2


@pytest.mark.deep
async def test_no_is_no(shell: Shell) -> None:
    before = await shell.world.whole()
    result = await shell.type(SECOND, answers="n\n")
    assert result.exit_code == 3
    assert "Nothing was changed" in result.output
    assert await shell.world.whole() == before


async def test_without_a_terminal_and_without_yes_nothing_is_switched(shell: Shell) -> None:
    result = await shell.type(SECOND)
    assert result.exit_code == 2
    assert "Nobody can be asked" in result.output
    assert (await shell.world.agent()).llm_config["handle"] != SECOND


async def test_json_is_one_object_also_when_the_canary_is_silent(shell: Shell) -> None:
    before = await shell.world.whole()
    result = await shell.type(SILENT, "--yes", "--json")
    assert result.exit_code == 1, result.output
    body = json.loads(result.stdout)
    assert body["reason"] == "canary_silent"
    assert body["plan"]["to"] == SILENT
    assert await shell.world.whole() == before


async def test_an_unknown_model_ends_with_2(shell: Shell) -> None:
    result = await shell.type("openai-proxy/secnd", "--yes")
    assert result.exit_code == 2
    assert f"Did you mean {SECOND}?" in result.output


@pytest.mark.parametrize("words", [[], [SECOND, "--back"]], ids=["neither", "both"])
async def test_a_handle_or_back_is_needed(shell: Shell, words: list[str]) -> None:
    assert (await shell.type(*words)).exit_code == 2


async def test_a_provider_is_added_and_its_key_is_nowhere_to_be_seen(shell: Shell) -> None:
    async with run_model("third") as url:
        result = await shell.type_providers(
            "add", "third", "--type", "openai", "--base-url", url, stdin=f"{KEY}\n"
        )
        assert result.exit_code == 0, result.output
        assert "openai-proxy/third" in result.output
        listed = await shell.type_providers("list", "--json")
        assert KEY not in result.output + listed.output
        (found,) = [p for p in json.loads(listed.stdout)["providers"] if p["name"] == "third"]
        assert found["has_key"] is True
        assert found["models"] == ["openai-proxy/third"]
        switched = await shell.type("openai-proxy/third", "--yes")
        assert switched.exit_code == 0, switched.output


@pytest.mark.deep
async def test_a_key_that_is_refused_adds_nothing(shell: Shell) -> None:
    async with run_model("third") as url:
        result = await shell.type_providers(
            "add", "third", "--type", "openai", "--base-url", url, stdin="wrong\n"
        )
    assert result.exit_code == 2
    assert "does not take the key" in result.output.replace("\n", " ")
    assert "third" not in (await shell.type_providers("list")).output


@pytest.mark.deep
async def test_a_key_is_replaced(shell: Shell) -> None:
    result = await shell.type_providers("add", "second", "--replace-key", stdin="another\n")
    assert result.exit_code == 0, result.output
    assert "has its new key" in result.output


@pytest.mark.deep
async def test_a_name_that_is_there_is_refused(shell: Shell) -> None:
    result = await shell.type_providers("add", "second", "--type", "openai", stdin="k\n")
    assert result.exit_code == 2
    assert "already" in result.output


@pytest.mark.deep
async def test_a_handle_that_is_taken_over_is_said(shell: Shell) -> None:
    async with run_model("rehearsal") as url:
        result = await shell.type_providers(
            "add", "mine", "--type", "openai", "--base-url", url, "--json", stdin="k\n"
        )
    assert json.loads(result.stdout)["taken_over"] == ["openai-proxy/rehearsal"]
