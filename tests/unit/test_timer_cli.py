"""The commands ``launchd`` and ``systemd``: what they print, refuse and end with."""

from __future__ import annotations

import json
import plistlib
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import tzlocal
from typer.testing import CliRunner

from han_solo.cli import main, timers
from han_solo.errors import TimerError
from han_solo.timers.machine import read_machine_zone
from han_solo.timers.systemd import Systemd

from . import timer_fixtures as fixtures


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAN_SOLO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HAN_SOLO_DATABASE_URL", "postgresql://u:hunter2@h/d")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def call():
    return lambda *words: CliRunner().invoke(main.build_app(), list(words))


@pytest.fixture
def fake(tmp_path):
    """A runner of the commands of a systemd that is made of files alone."""
    app = timers.build_app(
        "systemd",
        lambda: Systemd(folder=tmp_path / "units", run=systemctl, platform="linux"),
        help="x",
        files="units",
    )
    systemctl = fixtures.FakeSystemctl()
    return lambda *words: CliRunner().invoke(app, list(words))


def test_render_prints_a_plist_on_any_system_and_writes_nothing(call, tmp_path):
    result = call("launchd", "render", "backup")
    assert result.exit_code == 0
    plist = plistlib.loads(result.stdout.encode())
    assert plist["Label"] == "han-solo.job.backup"
    assert plist["ProgramArguments"][0] == sys.executable
    assert "hunter2" not in result.output
    assert not (tmp_path / "home").exists()


def test_render_names_each_file_when_there_are_several(call, tmp_path):
    result = call("systemd", "render")
    folder = tmp_path / "config" / "systemd" / "user"
    for name in ("backup.service", "backup.timer", "dream.service", "dream.timer"):
        assert f"==> {folder}/han-solo-job-{name} <==" in result.stdout


def test_a_command_that_is_rendered_has_its_file_of_secrets(call, tmp_path):
    result = call("launchd", "render", "dream", "--command")
    assert result.stdout.startswith("env -i ")
    assert "hunter2" not in result.output
    assert "hunter2" in (tmp_path / "home" / "secrets" / "jobs.env").read_text()


@pytest.mark.skipif(sys.platform == "darwin", reason="launchd is at home here")
@pytest.mark.parametrize("verb", ["install", "uninstall", "status"])
def test_launchd_elsewhere_is_one_sentence_that_says_what_to_use(call, verb, tmp_path):
    result = call("launchd", verb)
    assert result.exit_code == 2
    assert "han-solo systemd" in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "home").exists()


def test_a_job_that_does_not_exist_is_said_with_those_that_do(call):
    result = call("launchd", "render", "bakcup")
    assert result.exit_code == 2
    assert "There is no job 'bakcup'." in result.stderr
    assert "backup" in result.stderr


def test_status_ends_with_3_until_all_is_as_declared(fake, tmp_path):
    before = fake("status", "--json")
    assert before.exit_code == 3
    assert {row["stands"] for row in json.loads(before.stdout)} == {"missing"}
    assert "install makes it" in " ".join(fake("status").stdout.split())
    installed = fake("install", "--json")
    assert installed.exit_code == 0
    for row in json.loads(installed.stdout):
        assert row["did"] == "installed"
        assert all(Path(path).is_file() for path in row["files"])
    assert fake("status").exit_code == 0
    assert "unchanged" in fake("install").stdout


def test_uninstall_of_what_is_not_there_is_said(fake):
    assert "nothing changed" in fake("uninstall").stdout
    result = fake("uninstall", "dream")
    assert result.exit_code == 2
    assert "No timer of this installation is for dream" in result.stderr


class TestMachineZone:
    def test_a_zone_of_the_shell_alone_is_not_the_machines(self, monkeypatch, tmp_path):
        localtime = tmp_path / "localtime"
        localtime.symlink_to("/var/db/timezone/zoneinfo/Asia/Kolkata")
        monkeypatch.setenv("TZ", "Europe/Oslo")
        assert read_machine_zone(localtime) == ZoneInfo("Asia/Kolkata")

    def test_without_one_of_the_shell_it_is_what_the_system_says(self, monkeypatch):
        monkeypatch.delenv("TZ", raising=False)
        assert read_machine_zone().key == tzlocal.get_localzone_name()

    def test_one_that_has_no_name_is_refused(self, monkeypatch, tmp_path):
        (tmp_path / "localtime").write_bytes(b"TZif")
        monkeypatch.setenv("TZ", "Europe/Oslo")
        with pytest.raises(TimerError, match="can not be told"):
            read_machine_zone(tmp_path / "localtime")
