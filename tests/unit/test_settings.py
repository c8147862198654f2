"""Settings: what is read, what is refused, and that each is documented."""

from pathlib import Path

import pytest

from han_solo.connections import Connections, postgres_url, without_password
from han_solo.errors import SettingsError
from han_solo.home import Endpoints
from han_solo.settings import Settings
from han_solo.settings_loading import load_settings


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # no .env of the checkout's
    monkeypatch.setenv("HAN_SOLO_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_says_what_it_means(name):
    text = Settings.model_fields[name].description
    assert text
    assert len(text) > 20


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HAN_SOLO_BRIDGE_PORT", "eighty"),
        ("HAN_SOLO_BRIDGE_PORT", "70000"),
        ("HAN_SOLO_DATABASE_POOLER", "session"),
        ("HAN_SOLO_BRIDGE_NAME", "a:b"),
        ("HAN_SOLO_LETTA_TIMEOUT_S", "0"),
        ("HAN_SOLO_BRIDGE_URL", "https://memory.example"),
        ("HAN_SOLO_BRIDGE_URL", "memory.example/mcp"),
        ("HAN_SOLO_LETTA_BASE_URL", "letta:8283"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_variable(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert variable in str(caught.value)
    assert caught.value.exit_code == 2


def test_an_empty_variable_counts_as_not_set(monkeypatch):
    monkeypatch.setenv("HAN_SOLO_DATABASE_URL", "")
    assert load_settings().database_url is None


def test_the_dotenv_file_is_read_and_the_environment_wins(monkeypatch):
    Path(".env").write_text("HAN_SOLO_PERSON=Ada\nHAN_SOLO_MODEL=a/b\n", encoding="utf-8")
    monkeypatch.setenv("HAN_SOLO_MODEL", "c/d")
    settings = load_settings()
    assert (settings.person, settings.model) == ("Ada", "c/d")


def test_lists_are_split(monkeypatch):
    monkeypatch.setenv("HAN_SOLO_EXTENSIONS", "/one:/two")
    monkeypatch.setenv("HAN_SOLO_BRIDGE_ALLOWED_HOSTS", "a.example, b.example")
    settings = load_settings()
    assert settings.extensions == (Path("/one"), Path("/two"))
    assert settings.bridge_allowed_hosts == ("a.example", "b.example")


@pytest.mark.parametrize("url", ["http://letta:8283", "http://letta:8283/", "http://letta:8283/v1"])
def test_lettas_own_variable_is_read_in_any_of_its_forms(monkeypatch, url):
    monkeypatch.setenv("LETTA_BASE_URL", url)
    assert load_settings().letta_base_url == "http://letta:8283"


def test_secrets_do_not_show_in_the_settings(monkeypatch):
    monkeypatch.setenv("HAN_SOLO_DATABASE_URL", "postgresql://u:hunter2@h/d")
    monkeypatch.setenv("LETTA_SERVER_PASSWORD", "hunter2")
    assert "hunter2" not in repr(load_settings())


class TestConnections:
    def test_settings_win_over_the_home(self, monkeypatch):
        monkeypatch.setenv("HAN_SOLO_DATABASE_URL", "postgresql://u:p@elsewhere/d")
        assert Connections(load_settings()).database_url == "postgresql://u:p@elsewhere/d"

    @pytest.mark.parametrize("name", ["database_url", "letta_url", "bridge_local_url"])
    def test_a_part_that_never_ran_is_one_sentence_with_the_command(self, name):
        with pytest.raises(SettingsError, match="han-solo up"):
            getattr(Connections(load_settings()), name)

    def test_the_home_is_asked_for_the_rest(self):
        settings = load_settings()
        settings.at.create()
        settings.at.write_endpoints(Endpoints(postgres_port=1, letta_port=2, bridge_port=3))
        password = settings.at.ensure_secret("han_solo_db_password")
        found = Connections(settings)
        assert found.database_url == postgres_url(1, "han_solo", password, "han_solo")
        assert found.letta_url == "http://127.0.0.1:2"
        assert found.bridge_mcp_url == "http://127.0.0.1:3/mcp"

    def test_a_public_url_of_the_bridge_is_what_letta_is_given(self, monkeypatch):
        monkeypatch.setenv("HAN_SOLO_BRIDGE_URL", "https://memory.example/mcp")
        assert Connections(load_settings()).bridge_mcp_url == "https://memory.example/mcp"

    def test_a_password_never_shows(self):
        assert without_password("postgresql://u:p@h:5/d") == "postgresql://h:5/d"
