"""The launcher's allow list: exactly the given URLs, and all else is asked of Letta's own check."""

from __future__ import annotations

import os
import sys
import types

import pytest

from han_solo.embedded import launcher
from han_solo.embedded.letta_env import LETTA_VERSION

ALLOWED = "http://127.0.0.1:8765/mcp"


def refuse(url, *, resolve_hostname=True):
    raise ValueError(f"refused {url} {resolve_hostname}")


@pytest.fixture
def check(monkeypatch):
    monkeypatch.setenv(launcher.ALLOWED_URLS, ALLOWED)
    return launcher.build_url_check(launcher.take_allowed_urls(), refuse)


def test_the_given_url_passes(check):
    assert check(ALLOWED) == ALLOWED
    assert check(ALLOWED, resolve_hostname=False) == ALLOWED


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8766/mcp",
        "http://127.0.0.2:8765/mcp",
        "http://localhost:8765/mcp",
        "https://127.0.0.1:8765/mcp",
        "http://127.0.0.1:8765/mcp/",
        "http://127.0.0.1:8765/mcp/../admin",
        "http://127.0.0.1:8765/other",
        "http://127.0.0.1:8765/mcp?x=1",
        "http://127.0.0.1:8765/mcp?",
        "http://127.0.0.1:8765/mcp#x",
        "http://user@127.0.0.1:8765/mcp",
        "http://user:x@127.0.0.1:8765/mcp",
        "http://127.0.0.1/mcp",
        "http://127.0.0.1:8765",
        "http://127.1:8765/mcp",
        "http://[::1]:8765/mcp",
        "http://127.0.0.1:x/mcp",
        "http://169.254.169.254/latest",
        "ftp://127.0.0.1:8765/mcp",
        "",
    ],
)
def test_any_other_is_asked_of_lettas_own_check(check, url):
    with pytest.raises(ValueError, match="refused"):
        check(url)


def test_the_own_check_is_asked_as_it_was_called(check):
    with pytest.raises(ValueError, match="False"):
        check("http://10.0.0.1/mcp", resolve_hostname=False)


def test_several_urls_may_be_given(monkeypatch):
    monkeypatch.setenv(launcher.ALLOWED_URLS, f"{ALLOWED} https://bridge.example/mcp")
    check = launcher.build_url_check(launcher.take_allowed_urls(), refuse)
    assert check(ALLOWED)
    assert check("https://bridge.example/mcp")
    assert check("https://bridge.example:443/mcp")


def test_without_urls_nothing_passes():
    check = launcher.build_url_check(launcher.take_allowed_urls(), refuse)
    with pytest.raises(ValueError, match="refused"):
        check(ALLOWED)


@pytest.mark.usefixtures("check")
def test_the_variable_is_taken_out_of_the_environment():
    assert launcher.ALLOWED_URLS not in os.environ


@pytest.mark.parametrize("url", ["127.0.0.1:8765", "http://127.0.0.1/mcp?x", "ftp://a/b"])
def test_a_url_that_can_not_be_allowed_ends_the_start(monkeypatch, capsys, url):
    monkeypatch.setenv(launcher.ALLOWED_URLS, url)
    with pytest.raises(SystemExit) as caught:
        launcher.take_allowed_urls()
    assert caught.value.code == 2
    assert url in capsys.readouterr().err


def test_every_module_of_letta_that_holds_the_check_gets_the_new_one(monkeypatch):
    lettas = types.ModuleType("letta.services.made_up")
    foreign = types.ModuleType("made_up")
    for module in (lettas, foreign):
        module.validate = refuse
        monkeypatch.setitem(sys.modules, module.__name__, module)
    launcher.replace_everywhere("validate", refuse, print)
    assert lettas.validate is print
    assert foreign.validate is refuse


def test_one_version_is_meant_everywhere():
    assert launcher.VERSION == LETTA_VERSION
