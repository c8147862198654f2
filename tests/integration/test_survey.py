"""``status`` and ``doctor``: what they say of an installation, well and in each kind of trouble."""

import json
import os
import uuid

import psutil
import pytest
from typer.testing import CliRunner

from han_solo.cli import main as cli
from han_solo.cli.doctor_checks import WAYS_ROUND, examine, is_refused_by_letta
from han_solo.cli.survey import survey
from han_solo.connections import Connections
from han_solo.declare import Finding
from han_solo.findings.service import Findings
from han_solo.home import Home
from han_solo.letta.gateway import LettaGateway
from han_solo.loader import load_registry
from han_solo.settings import Settings

from .bridge_fixtures import AsActor, connect_letta, running

SPEC = '[agent]\nname = "{name}"\nperson = "Scott"\n[model]\nhandle = "openai-proxy/rehearsal"\n'


def level_of(found, name):
    return next(part for part in found.parts if part.name == name)


@pytest.fixture
def settings(tmp_path, database_url, letta_server, letta_actor, monkeypatch):
    """Settings of a bridge on the real servers, in an organisation of its own in Letta."""
    connect = LettaGateway.connect

    def connect_as_actor(_class, url, password=None, **options):
        options.setdefault("transport", AsActor(letta_actor["user_id"]))
        return connect(url, password, **options)

    monkeypatch.setattr(LettaGateway, "connect", classmethod(connect_as_actor))
    name = f"survey-{uuid.uuid4().hex[:8]}"
    spec = tmp_path / "agent.toml"
    spec.write_text(SPEC.format(name=name), encoding="utf-8")
    return Settings(
        _env_file=None,
        home=tmp_path / "home",
        database_url=database_url,
        agent_spec=spec,
        letta_base_url=letta_server.base_url,
        letta_password=letta_server.password,
        bridge_port=letta_server.bridge_ports[6],
        bridge_name=name,
    )


@pytest.fixture
async def bridge(settings, tmp_path, letta_server, letta_actor):
    letta = connect_letta(letta_server.base_url, letta_server.password, letta_actor["user_id"])
    options = settings.model_dump(
        include={
            "agent_spec", "letta_base_url", "letta_password", "bridge_port", "bridge_name"
        }
    )  # fmt: skip
    async with running(
        tmp_path,
        load_registry(),
        letta=letta,
        database_url=settings.database_url.get_secret_value(),
        agent_name=settings.bridge_name,
        **options,
    ) as bridge:
        await bridge.wait_health(lambda found: found["sync"]["tools_in_sync"], timeout_s=30)
        yield bridge


async def test_when_all_is_well_every_part_says_so(settings, bridge):
    found = await survey(Connections(settings))
    assert {part.name: part.level for part in found.parts} == {
        "declarations": "ok",
        "database": "ok",
        "letta": "ok",
        "agent": "ok",
        "bridge": "ok",
        "tools": "ok",
        "memory": "ok",
        "daemon": "warning",
        "guards": "ok",
        "jobs": "ok",
    }
    assert found.is_well
    assert {part.level for part in examine(Connections(settings), found)} <= {"ok", "warning"}


async def test_drift_is_a_failure_that_names_each_step_and_the_command(settings, bridge):
    agent = (await survey(Connections(settings))).agent
    gone = agent.tools[0]
    await bridge.backend._letta.gateway.detach_tool(agent.id, gone.id)
    found = await survey(Connections(settings))
    drift = level_of(found, "drift")
    assert drift.level == "failed"
    assert f"attach tool {gone.name}" in drift.detail
    assert "sync-tools" in drift.fix
    assert not found.is_well


async def test_a_conflict_does_not_hide_what_dropped_off(settings, bridge):
    gateway = bridge.backend._letta.gateway
    agent = (await survey(Connections(settings))).agent
    builtin = next(t for t in await gateway.fetch_tools() if t.name == "memory_insert")
    await gateway.attach_tool(agent.id, builtin.id)
    await gateway.detach_tool(agent.id, agent.tools[0].id)
    names = {part.name for part in (await survey(Connections(settings))).parts}
    assert {"drift", "conflict"} <= names


async def test_what_guards_have_open_is_said_and_what_is_off_is_not(settings, bridge):
    connections = Connections(settings)
    agent_id = (await survey(connections)).agent.id
    findings = Findings(bridge.backend._require_data().database)
    await findings.record("reasoner_off", agent_id, [])
    assert "nothing is open" in level_of(await survey(connections), "guards").detail

    mute = Finding("enable_reasoner", "The agent may be mute.", "Mend it.", severity="critical")
    await findings.record("reasoner_off", agent_id, [mute])
    found = await survey(connections)
    part = level_of(found, "guard reasoner_off")
    assert (part.level, part.detail) == ("failed", "The agent may be mute.")
    assert "han-solo guards explain reasoner_off" in part.fix
    assert not found.is_well

    off = Settings(
        _env_file=None, **{**settings.model_dump(), "guard_modes": {"reasoner_off": "off"}}
    )
    assert (await survey(Connections(off))).is_well


@pytest.mark.parametrize(
    ("change", "part", "words"),
    [
        ({"letta_password": "wrong"}, "letta", "password"),
        ({"letta_base_url": "http://127.0.0.1:9"}, "letta", "127.0.0.1:9"),
        ({"database_url": "postgresql://u:hunter2@127.0.0.1:9/d"}, "database", "127.0.0.1:9"),
        ({"agent_spec": "/nowhere/agent.toml"}, "declarations", "/nowhere/agent.toml"),
        ({"bridge_port": 9}, "bridge", "does not answer"),
    ],
)
async def test_the_part_that_is_away_is_named_and_the_others_are_still_looked_at(
    settings, bridge, change, part, words
):
    changed = Settings(_env_file=None, **{**settings.model_dump(), **change})
    found = await survey(Connections(changed))
    assert level_of(found, part).level == "failed"
    assert words in level_of(found, part).detail
    assert level_of(found, part).fix
    assert [each.name for each in found.parts if each.level == "failed"] == [part]
    assert "hunter2" not in json.dumps(found.to_json())


async def test_an_agent_that_is_gone_is_said_to_be_gone(settings, bridge):
    gone = f"agent-{uuid.uuid4()}"
    fresh = Settings(
        _env_file=None,
        **{**settings.model_dump(exclude={"agent_spec"}), "agent_id": gone, "model": "a/b"},
    )
    agent = level_of(await survey(Connections(fresh)), "agent")
    assert (agent.level, agent.address) == ("failed", gone)


async def test_your_own_letta_and_a_loopback_bridge_bring_the_ways_round(settings):
    found = await survey(Connections(settings))
    reach = next(part for part in examine(Connections(settings), found) if part.name == "reach")
    assert reach.level == "warning"
    assert reach.fix == WAYS_ROUND
    assert "letta serve" in reach.fix


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("http://127.0.0.1:8000/mcp", True),
        ("http://localhost:8000/mcp", True),
        ("http://10.1.2.3/mcp", True),
        ("http://172.17.0.2/mcp", True),
        ("http://[::1]:8000/mcp", True),
        ("http://bridge.local/mcp", True),
        ("http://bridge.default.svc/mcp", True),
        ("https://memory.example.org/mcp", False),
        ("https://8.8.8.8/mcp", False),
    ],
)
def test_the_addresses_that_letta_refuses_are_known(url, refused):
    assert is_refused_by_letta(url) is refused


async def test_the_verdict_is_lettas_own(letta_server):
    """The table above, asked of the code that refuses."""
    import subprocess

    urls = ("http://bridge.local/mcp", "http://10.1.2.3/mcp", "https://memory.example.org/mcp")
    code = (
        "import sys; from letta.helpers.url_validation import validate_mcp_server_url as check\n"
        "for url in sys.argv[1:]:\n"
        "    try: check(url, resolve_hostname=False); print('accepted')\n"
        "    except ValueError: print('refused')"
    )
    done = subprocess.run(
        [letta_server.python, "-c", code, *urls], capture_output=True, text=True, check=True
    )
    said = dict(zip(urls, done.stdout.strip().splitlines()[-len(urls) :], strict=True))
    assert {url: word == "refused" for url, word in said.items()} == {
        url: is_refused_by_letta(url) for url in urls
    }


class TestCommands:
    @pytest.fixture(autouse=True)
    def _empty(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HAN_SOLO_HOME", str(tmp_path / "home"))

    @pytest.mark.parametrize("name", ["status", "doctor"])
    def test_before_anything_ran_each_names_the_command_that_starts_it(self, name):
        done = CliRunner().invoke(cli.build_app(), [name, "--json"])
        assert done.exit_code == 1
        body = json.loads(done.stdout)
        assert not body["well"]
        database = next(part for part in body["parts"] if part["name"] == "database")
        assert "han-solo up" in database["fix"]

    @pytest.mark.parametrize(
        ("created", "level", "words"),
        [(0.0, "ok", "watches its parts"), (-60.0, "warning", "was killed")],
    )
    def test_status_says_whether_up_still_watches(self, tmp_path, created, level, words):
        home = Home(tmp_path / "home")
        home.create()
        began = psutil.Process().create_time() + created  # else the pid is another process's by now
        (home.run / "up.json").write_text(json.dumps({"pid": os.getpid(), "created": began}))

        body = json.loads(CliRunner().invoke(cli.build_app(), ["status", "--json"]).stdout)

        (part,) = [part for part in body["parts"] if part["name"] == "supervisor"]
        assert part["level"] == level
        assert words in part["detail"]

    def test_where_up_never_ran_status_does_not_speak_of_it(self):
        body = json.loads(CliRunner().invoke(cli.build_app(), ["status", "--json"]).stdout)
        assert "supervisor" not in {part["name"] for part in body["parts"]}

    def test_doctor_finds_secrets_that_others_can_read(self, tmp_path):
        home = Home(tmp_path / "home")
        home.create()
        home.ensure_secret("x")
        (home.secrets / "x").chmod(0o644)
        done = CliRunner().invoke(cli.build_app(), ["doctor"])
        assert done.exit_code == 1
        assert "others can read" in done.stdout
        assert "chmod -R go=" in done.stdout
