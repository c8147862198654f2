"""The home directory: modes, secrets made once, ports kept."""

import os
import stat

import pytest

from han_solo.errors import SettingsError
from han_solo.home import Endpoints, Home, write_private


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    home.create()
    return home


def test_directories_are_closed_to_others(home):
    assert mode(home.root) == (0o711 if os.geteuid() == 0 else 0o700)
    for path in (home.secrets, home.tokens, home.run, home.logs, home.letta):
        assert mode(path) == 0o700


def test_creating_again_gives_a_loosened_directory_its_mode_back(home):
    home.secrets.chmod(0o755)
    home.create()
    assert mode(home.secrets) == 0o700


def test_a_secret_is_made_once_in_a_file_of_its_owner(home):
    first = home.ensure_secret("x")
    assert home.ensure_secret("x") == first
    assert len(first) >= 43
    assert mode(home.secrets / "x") == 0o600


def test_ports_are_kept(home):
    assert home.load_endpoints() == Endpoints()
    home.write_endpoints(Endpoints(bridge_port=7))
    assert home.load_endpoints().bridge_port == 7


@pytest.mark.parametrize("text", ["{", '{"bridge_port": "x"}', '{"other": 1}', "[]"])
def test_a_damaged_file_of_ports_is_an_error_that_names_it(home, text):
    write_private(home.run / "endpoints.json", text)
    with pytest.raises(SettingsError, match=r"endpoints\.json"):
        home.load_endpoints()


def test_a_failed_write_leaves_the_old_file_and_no_litter(home):
    write_private(home.secrets / "x", "old")
    with pytest.raises(UnicodeEncodeError):
        write_private(home.secrets / "x", "\ud800")
    assert home.read_secret("x") == "old"
    assert [path.name for path in home.secrets.iterdir()] == ["x"]


def test_a_home_that_can_not_be_made_says_what_to_set(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="HAN_SOLO_HOME"):
        Home(tmp_path / "file" / "home").create()
