"""Units: as systemd itself reads them, and started and taken away through ``systemctl``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from han_solo.errors import TimerError
from han_solo.timers import service
from han_solo.timers.systemd import Systemd

from . import timer_fixtures as fixtures


@pytest.fixture
def systemctl():
    return fixtures.FakeSystemctl()


@pytest.fixture
def systemd(tmp_path, systemctl):
    return Systemd(folder=tmp_path / "units", run=systemctl, platform="linux")


@pytest.fixture
def installation(tmp_path):
    return fixtures.build_installation(tmp_path / "home")


def install(systemd, installation, *jobs):
    return service.install(systemd, jobs, installation, declared=[job.name for job in jobs])


def test_a_timer_makes_up_for_what_it_missed_in_times_of_utc(systemd, installation):
    rendered = systemd.render(fixtures.build_job(), installation)
    texts = {path.suffix: content.decode() for path, content in rendered.items()}
    assert "Persistent=true" in texts[".timer"]
    assert "OnCalendar=*-*-* 01:30:00 UTC" in texts[".timer"], "summer"
    assert "OnCalendar=*-*-* 02:30:00 UTC" in texts[".timer"], "winter"
    assert "u:p@h" not in texts[".service"]
    assert "--log" not in texts[".service"], "the journal keeps and rotates it"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd's own checker")
@pytest.mark.parametrize("when", [fixtures.DAILY, fixtures.HOURLY])
def test_systemd_itself_finds_no_fault_in_the_units(systemd, tmp_path, when):
    home = tmp_path / "a home of 100%"
    home.mkdir()
    installation = fixtures.build_installation(home)
    installation = installation.__class__(
        home=home,
        interpreter=Path(sys.executable),
        zone=installation.zone,
        environment=installation.environment,
        secrets={},
    )
    systemd.folder.mkdir()
    for path, content in systemd.render(fixtures.build_job(when=when), installation).items():
        path.write_bytes(content)
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", *map(str, systemd.folder.iterdir())],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_job_is_started_once_and_taken_away_whole(systemd, systemctl, installation):
    job = fixtures.build_job()
    assert [change.did for change in install(systemd, installation, job)] == ["installed"]
    assert systemctl.active == {"han-solo-job-dream.timer"}
    assert [change.did for change in install(systemd, installation, job)] == ["unchanged"]
    [status] = service.compare(systemd, [job], installation)
    assert (status.stands, status.loaded.last_exit) == ("as declared", 1)
    systemctl.active.clear()
    assert service.compare(systemd, [job], installation)[0].stands == "not loaded"
    service.uninstall(systemd, None, installation)
    assert systemctl.reloads == 2
    assert list(systemd.folder.iterdir()) == []


def test_what_is_installed_is_read_back_to_the_character(systemd, tmp_path):
    home = tmp_path / 'a "home" of 100% \\ $x'
    installation = fixtures.build_installation(home, HAN_SOLO_AGENT_ID="agent-1")
    install(systemd, installation, fixtures.build_job())
    [timer] = systemd.find_installed()
    assert (timer.home, timer.interpreter, timer.agent_id, timer.fault) == (
        home,
        installation.interpreter,
        "agent-1",
        None,
    )


@pytest.mark.parametrize("text", ["", "ExecStart=", 'ExecStart=/a\nEnvironment="HAN_SOLO_HOME=/b'])
def test_a_unit_that_can_not_be_read_is_a_fault_and_no_crash(systemd, text):
    systemd.folder.mkdir()
    (systemd.folder / "han-solo-job-dream.service").write_text(text)
    [timer] = systemd.find_installed()
    assert "can not be read" in timer.fault


def test_without_a_session_nothing_is_written(systemd, systemctl, installation):
    systemctl.has_session = False
    with pytest.raises(TimerError, match="no session for this user: Failed to connect to bus"):
        install(systemd, installation, fixtures.build_job())
    assert not systemd.folder.exists()


def test_a_mac_is_told_of_launchd(installation):
    with pytest.raises(TimerError, match="han-solo launchd"):
        install(Systemd(platform="darwin"), installation, fixtures.build_job())
