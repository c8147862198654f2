"""Plists: of the documented keys and types, loaded and taken away through ``launchctl``."""

from __future__ import annotations

import plistlib
import stat
from zoneinfo import ZoneInfo

import pytest

from han_solo.errors import TimerError
from han_solo.timers import service
from han_solo.timers.launchd import Launchd

from . import timer_fixtures as fixtures

KEYS = {
    "Label": str,
    "ProgramArguments": list,
    "WorkingDirectory": str,
    "EnvironmentVariables": dict,
    "StartCalendarInterval": list,
    "StandardOutPath": str,
    "StandardErrorPath": str,
    "RunAtLoad": bool,
    "ProcessType": str,
    "LowPriorityIO": bool,
    "Nice": int,
    "Umask": int,
    "ExitTimeOut": int,
}
"""Keys and types by the manual page launchd.plist(5) of macOS, "XML PROPERTY LIST KEYS"
(https://keith.github.io/xcode-man-pages/launchd.plist.5.html)."""

CALENDAR = {"Minute": range(60), "Hour": range(24)}
PROCESS_TYPES = {"Background", "Standard", "Adaptive", "Interactive"}


@pytest.fixture
def launchctl():
    return fixtures.FakeLaunchctl()


@pytest.fixture
def launchd(tmp_path, launchctl):
    return Launchd(
        folder=tmp_path / "LaunchAgents",
        run=launchctl,
        user_id=501,
        platform="darwin",
        sleep=lambda _delay_s: None,
        machine_zone=ZoneInfo("Europe/Oslo"),
    )


@pytest.fixture
def installation(tmp_path):
    return fixtures.build_installation(tmp_path / "home")


def install(launchd, installation, *jobs, **options):
    return service.install(
        launchd, jobs, installation, declared=[job.name for job in jobs], **options
    )


@pytest.mark.parametrize("when", [fixtures.DAILY, fixtures.HOURLY])
def test_a_plist_holds_documented_keys_of_the_documented_types(launchd, installation, when):
    [(path, content)] = launchd.render(fixtures.build_job(when=when), installation).items()
    plist = plistlib.loads(content)
    assert path.name == f"{plist['Label']}.plist"
    assert {key: type(value) for key, value in plist.items()} == KEYS
    assert all(type(word) is str for word in plist["ProgramArguments"])
    assert all(type(value) is str for value in plist["EnvironmentVariables"].values())
    assert plist["ProcessType"] in PROCESS_TYPES
    assert -20 <= plist["Nice"] <= 20
    for entry in plist["StartCalendarInterval"]:
        assert "Minute" in entry
        assert all(type(value) is int and value in CALENDAR[key] for key, value in entry.items())


def test_what_is_rendered_is_absolute_and_holds_no_secret(launchd, installation):
    [content] = launchd.render(fixtures.build_job(), installation).values()
    plist = plistlib.loads(content)
    assert plist["ProgramArguments"][0] == "/opt/my venv/bin/python"
    assert plist["EnvironmentVariables"] == installation.environment
    assert plist["WorkingDirectory"] == str(installation.home)
    assert {"Hour": 3, "Minute": 30} in plist["StartCalendarInterval"]
    assert b"u:p@h" not in content


def test_a_job_is_loaded_once_and_left_alone_after(launchd, launchctl, installation):
    job = fixtures.build_job()
    assert [change.did for change in install(launchd, installation, job)] == ["installed"]
    assert set(launchctl.loaded) == {"han-solo.job.dream"}
    assert [change.did for change in install(launchd, installation, job)] == ["unchanged"]
    [status] = service.compare(launchd, [job], installation)
    assert (status.stands, status.loaded.last_exit) == ("as declared", 1)
    assert stat.S_IMODE(installation.secrets_file.stat().st_mode) == 0o600


def test_one_that_changed_is_written_and_loaded_anew(launchd, launchctl, installation, tmp_path):
    job = fixtures.build_job()
    install(launchd, installation, job)
    changed = fixtures.build_installation(installation.home, HAN_SOLO_PERSON="Ada")
    [status] = service.compare(launchd, [job], changed)
    assert status.stands == "differs"
    assert [change.did for change in install(launchd, changed, job)] == ["replaced"]
    assert "Ada" in launchctl.loaded["han-solo.job.dream"]


def test_one_that_was_disabled_by_hand_is_loaded_all_the_same(launchd, launchctl, installation):
    launchctl.disabled.add("han-solo.job.dream")
    install(launchd, installation, fixtures.build_job())
    assert set(launchctl.loaded) == {"han-solo.job.dream"}


def test_a_job_that_runs_is_not_stopped_to_be_written_anew(launchd, launchctl, installation):
    job = fixtures.build_job()
    install(launchd, installation, job)
    launchctl.running.add("han-solo.job.dream")
    changed = fixtures.build_installation(installation.home, HAN_SOLO_PERSON="Ada")
    with pytest.raises(TimerError, match="The job dream runs now"):
        install(launchd, changed, job)
    assert "Ada" not in launchctl.loaded["han-solo.job.dream"]


def test_what_launchd_does_not_take_is_not_called_installed(launchd, launchctl, installation):
    launchctl.refuses = True
    with pytest.raises(TimerError, match="Bootstrap failed: 5"):
        install(launchd, installation, fixtures.build_job())


def test_a_folder_that_is_not_ones_own_is_one_sentence(launchd, launchctl, installation):
    launchd.folder.write_text("no folder at all")
    with pytest.raises(TimerError, match="has to be yours"):
        install(launchd, installation, fixtures.build_job())
    assert launchctl.loaded == {}


def test_a_job_that_is_not_declared_any_more_is_taken_away(launchd, launchctl, installation):
    old, new = fixtures.build_job("old"), fixtures.build_job("new")
    install(launchd, installation, old)
    changes = install(launchd, installation, new)
    assert {change.job: change.did for change in changes} == {"new": "installed", "old": "removed"}
    assert set(launchctl.loaded) == {"han-solo.job.new"}
    assert [path.name for path in launchd.folder.iterdir()] == ["han-solo.job.new.plist"]


def test_another_installations_timers_are_left_alone_unless_asked(
    launchd, launchctl, installation, tmp_path
):
    job = fixtures.build_job()
    install(launchd, installation, job)
    other = fixtures.build_installation(tmp_path / "other")
    with pytest.raises(TimerError, match="of another installation"):
        install(launchd, other, job)
    assert service.uninstall(launchd, None, other) == ()
    assert [row.stands for row in service.compare(launchd, [job], other)] == ["another home"]
    assert [change.did for change in install(launchd, other, job, replace=True)] == ["replaced"]


def test_uninstall_leaves_nothing_behind(launchd, launchctl, installation):
    install(launchd, installation, fixtures.build_job(), fixtures.build_job("backup"))
    service.uninstall(launchd, ["backup"], installation)
    assert set(launchctl.loaded) == {"han-solo.job.dream"}
    assert installation.secrets_file.exists()
    service.uninstall(launchd, None, installation)
    assert launchctl.loaded == {}
    assert list(launchd.folder.iterdir()) == []
    assert not installation.secrets_file.exists()


def test_what_is_installed_is_read_back(launchd, installation):
    ours = fixtures.build_installation(installation.home, HAN_SOLO_AGENT_ID="agent-1")
    install(launchd, ours, fixtures.build_job())
    [timer] = launchd.find_installed()
    assert (timer.job, timer.home, timer.interpreter, timer.agent_id, timer.fault) == (
        "dream",
        ours.home,
        ours.interpreter,
        "agent-1",
        None,
    )


@pytest.mark.parametrize("content", [b"", b"<plist", b"\x00", plistlib.dumps([]),
                                     plistlib.dumps({"ProgramArguments": []})])  # fmt: skip
def test_a_plist_that_can_not_be_read_is_a_fault_and_no_crash(launchd, content):
    launchd.folder.mkdir()
    (launchd.folder / "han-solo.job.dream.plist").write_bytes(content)
    [timer] = launchd.find_installed()
    assert "can not be read" in timer.fault


@pytest.mark.parametrize(
    ("changes", "match"),
    [({"platform": "linux"}, "another system"), ({"user_id": 0}, "no login session")],
)
def test_where_launchd_is_not_at_home_install_says_what_to_use(installation, changes, match):
    options = {"platform": "darwin", "user_id": 501, "run": fixtures.FakeLaunchctl()} | changes
    with pytest.raises(TimerError, match=match):
        install(Launchd(**options), installation, fixtures.build_job())
    assert not installation.home.exists()
