"""What an alert says, and that each way is told once whatever the others do."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from han_solo.daemon import alerts as module
from han_solo.daemon.alerts import Alerts, MacWay, build_text, build_title
from han_solo.errors import AlertFailed, SettingsError
from han_solo.findings.model import Alert, FindingRow, RemedyRow

NOW = datetime(2030, 1, 2, tzinfo=UTC)


def row(number: int = 1, **more: Any) -> FindingRow:
    fields: dict[str, Any] = {
        "id": number,
        "guard": "g",
        "agent_id": "agent-1",
        "key": f"key-{number}",
        "severity": "warning",
        "summary": f"Number {number} is wrong.",
        "hint": "Mend it.",
        "detail": {},
        "opened_at": NOW,
        "last_seen_at": NOW,
        "times_seen": 1,
        "alerted_at": None,
        "resolved_at": None,
    }
    return FindingRow(**(fields | more))


def remedy(outcome: Any, what: str = "It was turned off and on.") -> RemedyRow:
    return RemedyRow(1, "g", "agent-1", (1,), 1, NOW, NOW, outcome, what)


class Way:
    def __init__(self, name: str = "pager", error: Exception | None = None) -> None:
        self.name = name
        self.error = error
        self.told: list[tuple[str, str, bool]] = []

    async def tell(self, title: str, text: str, *, is_critical: bool) -> None:
        if self.error is not None:
            raise self.error
        self.told.append((title, text, is_critical))


@pytest.mark.parametrize(
    ("alert", "said"),
    [
        (Alert(row(), None), "Mend it."),
        (
            Alert(row(), remedy("no_effect")),
            "The remedy did not help: It was turned off and on.",
        ),
        (Alert(row(), remedy("abandoned")), "Mend it."),
        (Alert(row(resolved_at=NOW), remedy("done")), "Repaired: It was turned off and on."),
        (Alert(row(resolved_at=NOW), None), "It is gone again."),
    ],
)
def test_an_alert_says_what_is_wrong_since_when_and_what_came_of_it(
    alert: Alert, said: str
) -> None:
    head = "[warning] g, 2030-01-02 00:00 UTC: Number 1 is wrong."
    assert build_text([alert]) == f"{head}\n{said}"


def test_the_worst_comes_first_and_more_than_a_phone_shows_is_counted() -> None:
    many = [Alert(row(number), None) for number in range(1, 30)]
    text = build_text([*many, Alert(row(30, severity="critical"), None)])
    assert text.startswith("[critical] g, 2030-01-02 00:00 UTC: Number 30 is wrong.")
    assert text.count("is wrong") == module.MOST_TOLD
    assert text.endswith("And 20 more: han-solo guards list")


def test_the_title_says_how_bad_it_is() -> None:
    warning, critical = Alert(row(), None), Alert(row(2, severity="critical"), None)
    gone = Alert(row(3, severity="critical", resolved_at=NOW), remedy("done"))
    assert build_title("ren", [warning]) == "ren: 1 finding"
    assert build_title("ren", [warning, critical, gone]) == "ren: 3 findings, 1 critical"
    assert build_title("ren", [gone]) == "ren: 1 finding, repaired"


async def test_a_way_that_told_is_left_out_while_another_fails() -> None:
    good, bad = Way("good"), Way("bad", AlertFailed("bad did not take the alert."))
    sender = Alerts("ren", [good, bad])
    with capture_logs():
        for _ in range(3):
            with pytest.raises(AlertFailed, match="bad did not take the alert"):
                await sender.send([Alert(row(), None)])
        bad.error = None
        await sender.send([Alert(row(), None), Alert(row(2), None)])
    assert [text.count("is wrong") for _, text, _ in good.told] == [1, 1]
    assert [text.count("is wrong") for _, text, _ in bad.told] == [2]


async def test_what_became_critical_is_told_again_by_all() -> None:
    way = Way()
    sender = Alerts("ren", [way])
    with capture_logs():
        await sender.send([Alert(row(), None)])
        await sender.send([Alert(row(severity="critical"), None)])
    assert [is_critical for _, _, is_critical in way.told] == [False, True]


async def test_a_way_with_a_fault_of_its_own_fails_like_any_other() -> None:
    sender = Alerts("ren", [Way("odd", ZeroDivisionError("secret"))])
    with (
        capture_logs(),
        pytest.raises(AlertFailed, match="odd failed: ZeroDivisionError") as caught,
    ):
        await sender.send([Alert(row(), None)])
    assert "secret" not in str(caught.value)


async def test_each_finding_is_logged_as_loudly_as_it_deserves() -> None:
    with capture_logs() as logs:
        repaired = Alert(row(3, severity="critical", resolved_at=NOW), remedy("done"))
        critical = Alert(row(2, severity="critical"), None)
        await Alerts("ren", []).send([Alert(row(), None), critical, repaired])
    assert [(entry["event"], entry["log_level"], entry["key"]) for entry in logs] == [
        ("alert.raised", "warning", "key-1"),
        ("alert.raised", "error", "key-2"),
        ("alert.raised", "warning", "key-3"),
    ]


def test_a_url_that_apprise_does_not_know_is_said_by_its_place_and_not_shown() -> None:
    urls = [SecretStr("json://hooks.test/x"), SecretStr("carrier-pigeon://me:secret@roof")]
    with pytest.raises(SettingsError, match="Number 2 of HAN_SOLO_ALERT_URLS") as caught:
        Alerts.connect("ren", urls)
    assert "secret" not in str(caught.value)


async def test_a_test_message_goes_everywhere_and_says_where() -> None:
    way = Way("pager")
    assert await Alerts("ren", [way, Way("mail")]).test() == ("pager", "mail")
    assert [title for title, _, _ in way.told] == ["ren: a test"]
    with pytest.raises(AlertFailed, match="off the hook"):
        await Alerts("ren", [Way("pager", AlertFailed("It is off the hook."))]).test()
    with pytest.raises(SettingsError, match="nowhere but into the log"):
        await Alerts("ren", []).test()


@pytest.fixture
def osascript(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """Put a program in osascript's place that keeps what it is given."""
    kept = tmp_path / "kept"
    program = tmp_path / "osascript"

    def install(code: int) -> Any:
        program.write_text(
            f'#!{sys.executable}\nimport json, sys\nopen({str(kept)!r}, "w")'
            f".write(json.dumps(sys.argv[1:]))\nsys.exit({code})\n"
        )
        program.chmod(0o755)
        return kept

    monkeypatch.setenv("PATH", str(tmp_path))
    return install


async def test_on_a_mac_words_are_shown_as_words_and_never_run(osascript: Any) -> None:
    kept = osascript(0)
    text = 'a" & (do shell script "touch /x") & "'
    await MacWay().tell("ren: 1 finding", text, is_critical=True)
    given = json.loads(kept.read_text())
    assert given[-2:] == ["ren: 1 finding", text]
    assert not any(text in part for part in given[:-1])
    assert any('sound name "Basso"' in part for part in given)


async def test_a_mac_without_a_screen_is_noted_and_no_failure(osascript: Any) -> None:
    osascript(1)
    with capture_logs() as logs:
        await MacWay().tell("title", "text", is_critical=False)
    assert [entry["event"] for entry in logs] == ["alert.not_shown"]


def test_only_a_mac_is_told_by_its_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert [way.name for way in Alerts.connect("ren", [])._ways] == [MacWay.name]
    monkeypatch.setattr(sys, "platform", "linux")
    assert Alerts.connect("ren", [])._ways == []
