"""Logging: no secret leaves, whatever key it hides under."""

import json

import pytest

from han_solo import logs


@pytest.mark.parametrize(
    "event",
    [
        {"password": "hunter2"},
        {"letta_password": "hunter2"},
        {"token": "hs_ab_" + "x" * 43},
        {"url": "postgresql://user:hunter2@host/name"},
        {"detail": "refused hs_abcd1234_" + "x" * 43 + " again"},
        {"api_key": "hunter2"},
    ],
)
def test_secrets_are_redacted(capsys, event):
    logs.configure(fmt="json")
    logs.get("test").info("thing.happened", **event)
    line = capsys.readouterr().err
    assert "hunter2" not in line
    assert "x" * 43 not in line
    assert "[redacted]" in json.loads(line)[next(iter(event))]


def test_logs_go_to_stderr_and_carry_level_time_and_component(capsys):
    logs.configure(fmt="json")
    logs.get("test").warning("thing.happened")
    captured = capsys.readouterr()
    assert captured.out == ""
    line = json.loads(captured.err)
    assert line["event"] == "thing.happened"
    assert line["level"] == "warning"
    assert line["component"] == "test"
    assert line["timestamp"].endswith("Z")


def test_lines_below_the_level_are_not_written(capsys):
    logs.configure(level="warning", fmt="json")
    logs.get("test").info("thing.happened")
    assert capsys.readouterr().err == ""
