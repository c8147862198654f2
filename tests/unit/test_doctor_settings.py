"""``doctor`` warns of variables with our prefix that nobody reads and names the nearest setting."""

import pytest

from han_solo.cli.doctor_settings import PREFIX, examine_variables, find_unread, list_settings
from han_solo.settings import Settings


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("HAN_SOLO_DATABSE_URL", "HAN_SOLO_DATABASE_URL"),
        ("HAN_SOLO_MODLE", "HAN_SOLO_MODEL"),
        ("HAN_SOLO_LETTA_URL", "HAN_SOLO_LETTA_BASE_URL"),
        ("han_solo_bridge_prot", "HAN_SOLO_BRIDGE_PORT"),
    ],
)
def test_a_misspelt_variable_is_a_warning_that_names_the_nearest(monkeypatch, name, nearest):
    monkeypatch.setenv(name, "x")

    (part,) = examine_variables()

    assert part.level == "warning"
    assert name in part.detail
    assert nearest in part.fix


def test_one_that_is_like_none_is_told_where_they_are_listed(monkeypatch):
    monkeypatch.setenv("HAN_SOLO_XYZZY", "x")
    (part,) = examine_variables()
    assert "docs/reference/settings.md" in part.fix


def test_a_misspelt_line_of_the_env_file_is_found(tmp_path):
    (tmp_path / ".env").write_text("HAN_SOLO_PERSN=Scott\nHAN_SOLO_PERSON=Scott\nOTHER=1\n")

    (part,) = examine_variables()

    assert part.address == str(tmp_path / ".env")
    assert "HAN_SOLO_PERSON" in part.fix


def test_every_setting_and_what_the_scripts_read_is_known():
    settings = {f"{PREFIX}{field.upper()}" for field in Settings.model_fields}
    assert settings <= list_settings()
    assert find_unread([*settings, "HAN_SOLO_PYTHON", "han_solo_home", "LETTA_BASE_URL"]) == set()
