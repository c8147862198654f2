"""How guards run: what they declare, and what the settings say instead."""

from __future__ import annotations

import pytest

from han_solo.daemon.choice import choose, modes_of
from han_solo.declare import GuardSpec
from han_solo.errors import SettingsError
from han_solo.settings import Settings
from han_solo.settings_loading import load_settings


async def nothing(_context, _findings=None):
    return ()


def spec(name, *, mode="observe", remedy=None):
    return GuardSpec(name, nothing, remedy, 60, "it", mode, "Finds it.", "x.py:1")


GUARDS = [spec("watcher"), spec("mender", mode="repair", remedy=nothing)]


@pytest.fixture
def settings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def load(**variables: str) -> Settings:
        for name, value in variables.items():
            monkeypatch.setenv(f"HAN_SOLO_{name.upper()}", value)
        return load_settings()

    return load


def test_what_a_guard_declares_holds_until_a_setting_says_otherwise(settings):
    mender, watcher = choose(GUARDS, settings())
    assert (mender.name, mender.mode, mender.every_s, mender.is_set) == (
        "mender", "repair", 60, False,
    )  # fmt: skip
    assert watcher.mode == "observe"


def test_settings_replace_mode_and_interval(settings):
    mender, watcher = choose(
        GUARDS, settings(guard_modes=" mender=observe , watcher=off,", guard_every_s="mender=7.5")
    )
    assert (mender.mode, mender.every_s, mender.is_set) == ("observe", 7.5, True)
    assert not watcher.runs
    assert modes_of([mender, watcher]) == {"mender": "observe", "watcher": "off"}


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"guard_modes": "mendre=off"}, "'mendre', and there is none. Did you mean mender?"),
        ({"guard_every_s": "nobody=5"}, "'nobody', and there is none. `han-solo guards list`"),
        ({"guard_modes": "watcher=repair"}, "watcher repair, and that guard has no remedy"),
    ],
)
def test_a_guard_that_can_not_run_so_is_said(settings, variables, said):
    with pytest.raises(SettingsError) as caught:
        choose(GUARDS, settings(**variables))
    assert said in str(caught.value)
    assert f"HAN_SOLO_{next(iter(variables)).upper()}" in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"guard_modes": "mender"}, "HAN_SOLO_GUARD_MODES: 'mender' is not name=value"),
        ({"guard_modes": "mender="}, "'mender=' is not name=value"),
        ({"guard_modes": "mender=of"}, "HAN_SOLO_GUARD_MODES: mender: Input should be 'observe'"),
        ({"guard_modes": "mender=off,mender=repair"}, "mender stands in it twice"),
        ({"guard_every_s": "mender=0"}, "HAN_SOLO_GUARD_EVERY_S: mender: Input should be greater"),
        ({"guard_every_s": "mender=soon"}, "HAN_SOLO_GUARD_EVERY_S: mender: "),
        ({"guard_every_s": "mender=inf"}, "HAN_SOLO_GUARD_EVERY_S: mender: "),
    ],
)
def test_a_setting_that_can_not_be_read_is_said(settings, variables, said):
    with pytest.raises(SettingsError) as caught:
        settings(**variables)
    assert said in str(caught.value)


def test_alert_urls_are_split_at_spaces_and_never_shown(settings):
    found = settings(alert_urls="json://a.test/x,y  mailto://me:secret@b.test")
    assert [url.get_secret_value() for url in found.alert_urls] == [
        "json://a.test/x,y",
        "mailto://me:secret@b.test",
    ]
    assert "secret" not in repr(found)
