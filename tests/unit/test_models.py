"""Which model is used: a key's, the spec's, or the rehearsal model."""

import pytest

from han_solo.embedded.models import (
    PROVIDER_OF_KEY,
    REHEARSAL_HANDLE,
    choose_model,
    load_model_keys,
)
from han_solo.errors import SettingsError
from han_solo.reconcile.spec import load_spec


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in (*PROVIDER_OF_KEY, "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_key_the_rehearsal_model_answers():
    choice = choose_model(load_spec(), {})
    assert choice.is_rehearsal
    assert choice.handle == REHEARSAL_HANDLE
    assert not choice.environment


def test_an_agent_of_a_real_model_is_not_given_the_stand_in_when_a_key_is_missing():
    with pytest.raises(SettingsError) as caught:
        choose_model(load_spec(), {}, last="google_ai/gemini-2.5-flash")
    assert "google_ai/gemini-2.5-flash" in str(caught.value)
    assert f"HAN_SOLO_MODEL={REHEARSAL_HANDLE}" in str(caught.value)


def test_with_the_key_of_its_provider_the_specs_model_answers():
    choice = choose_model(load_spec(), {"GEMINI_API_KEY": "k"})
    assert not choice.is_rehearsal
    assert choice.handle is None
    assert choice.environment == {"GEMINI_API_KEY": "k"}


def test_a_key_of_another_provider_is_refused_with_both_ways_out():
    with pytest.raises(SettingsError) as caught:
        choose_model(load_spec(), {"OPENAI_API_KEY": "secret-value"})
    text = str(caught.value)
    assert "google_ai/gemini-2.5-flash" in text
    assert "GEMINI_API_KEY" in text
    assert "HAN_SOLO_MODEL" in text
    assert "secret-value" not in text


def test_a_model_named_in_the_settings_goes_with_its_own_key():
    spec = load_spec(model="openai/gpt-4.1")
    assert not choose_model(spec, {"OPENAI_API_KEY": "k"}).is_rehearsal


def test_the_rehearsal_model_can_be_asked_for_in_spite_of_a_key():
    choice = choose_model(load_spec(model=REHEARSAL_HANDLE), {"GEMINI_API_KEY": "k"})
    assert choice.is_rehearsal
    assert not choice.environment


def test_a_server_behind_another_base_url_is_lettas_proxy_provider():
    spec = load_spec(model="openai-proxy/qwen3")
    keys = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    assert not choose_model(spec, keys).is_rehearsal


def test_keys_are_read_from_dotenv_and_the_environment_wins(tmp_path, monkeypatch):
    dotenv = tmp_path / ".env"
    dotenv.write_text("GEMINI_API_KEY=a\nGROQ_API_KEY=b\nOTHER=c\n", encoding="utf-8")
    monkeypatch.setenv("GROQ_API_KEY", "d")
    assert load_model_keys(dotenv) == {"GEMINI_API_KEY": "a", "GROQ_API_KEY": "d"}


def test_a_base_url_alone_is_no_key(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert load_model_keys(tmp_path / "none") == {}


def test_keys_do_not_show():
    choice = choose_model(load_spec(), {"GEMINI_API_KEY": "secret-value"})
    assert "secret-value" not in repr(choice)
