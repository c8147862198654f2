"""What is baked into a timer: all that was set, absolute, the secrets in a file of their own."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from han_solo.errors import SettingsError
from han_solo.settings import Settings
from han_solo.settings_loading import load_settings
from han_solo.timers.installation import build_installation

from . import timer_fixtures as fixtures


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    (tmp_path / "start").mkdir()
    monkeypatch.chdir(tmp_path / "start")
    monkeypatch.setenv("HAN_SOLO_HOME", str(tmp_path / "home"))


SET = {
    "HAN_SOLO_AGENT_SPEC": "specs/own.toml",
    "HAN_SOLO_EXTENSIONS": "one:/two",
    "HAN_SOLO_AGENT_ID": "agent-1",
    "HAN_SOLO_TIMEZONE": "Europe/Oslo",
    "HAN_SOLO_GUARD_MODES": "reasoner_off=observe, model_settings=off",
    "HAN_SOLO_BRIDGE_ALLOWED_HOSTS": "a.example, b.example",
    "HAN_SOLO_DATABASE_URL": 'postgresql://u:it\'s $4 ${HOME} \\ "x"@h/d',
    "HAN_SOLO_ALERT_URLS": "json://x:y@z mailto://a:b@c",
    "LETTA_BASE_URL": "https://me:word@letta.example/v1",
    "LETTA_SERVER_PASSWORD": "hunter2",
}


def test_a_process_with_nothing_but_what_is_baked_has_the_same_settings(monkeypatch, tmp_path):
    Path(".env").write_text("HAN_SOLO_PERSON=Ada\nHAN_SOLO_AGENT_ID=old\n")
    for name, value in SET.items():
        monkeypatch.setenv(name, value)
    before = load_settings()
    installation = build_installation(before)
    installation.prepare()

    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    for name in [*SET, "HAN_SOLO_HOME"]:
        monkeypatch.delenv(name)
    for name, value in installation.environment.items():
        monkeypatch.setenv(name, value)
    after = load_settings()

    start = tmp_path / "start"
    expected = before.model_dump() | {
        "agent_spec": start / "specs" / "own.toml",
        "extensions": (start / "one", Path("/two")),
        "env_file": installation.secrets_file,
    }
    assert after.model_dump() == expected
    assert build_installation(after).environment == installation.environment
    assert build_installation(after).secrets == installation.secrets


def test_secrets_stand_in_the_0600_file_alone(monkeypatch):
    for name, value in SET.items():
        monkeypatch.setenv(name, value)
    installation = build_installation(load_settings())
    baked = " ".join(installation.environment.values())
    for secret in ("u:it", "x:y", "hunter2", "me:word"):
        assert secret not in baked
        assert secret in installation.secrets_text
        assert secret not in repr(installation)


@given(
    value=st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), min_size=1)
)
def test_any_secret_is_read_back_to_the_character(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("secrets") / "jobs.env"
    installation = fixtures.build_installation(Path("/home"))
    text = installation.__class__(
        home=installation.home,
        interpreter=installation.interpreter,
        zone=installation.zone,
        environment={},
        secrets={"HAN_SOLO_LETTA_PASSWORD": value},
    ).secrets_text
    path.write_text(text + "\n", encoding="utf-8")
    settings = Settings(_env_file=path)
    assert settings.letta_password is not None
    assert settings.letta_password.get_secret_value() == value


def test_the_line_for_a_shell_is_one_command_from_an_empty_environment(tmp_path):
    words = shlex.split(fixtures.build_installation(tmp_path).build_line("dream"))
    assert words[:2] == ["env", "-i"]
    assert 'HAN_SOLO_PERSON=a "b" \\ 100% $HOME' in words
    assert words[-4:] == ["jobs", "run", "dream", "--if-due"]


def test_a_file_of_settings_that_is_missing_or_open_to_others_is_refused(monkeypatch, tmp_path):
    path = tmp_path / "jobs.env"
    monkeypatch.setenv("HAN_SOLO_ENV_FILE", str(path))
    with pytest.raises(SettingsError, match=r"can not be read: No such file"):
        load_settings()
    path.write_text("HAN_SOLO_PERSON=Ada\n")
    path.chmod(0o640)
    with pytest.raises(SettingsError, match=r"chmod 600"):
        load_settings()
    path.chmod(0o600)
    Path(".env").write_text("HAN_SOLO_PERSON=Bea\n")
    assert load_settings().person == "Ada", "it is read in place of .env"
    assert os.environ["HAN_SOLO_ENV_FILE"] == str(path)
