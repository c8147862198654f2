"""Progress: drawn on a terminal, a line a step elsewhere, and nothing where nobody looks."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from han_solo.embedded.progress import LineProgress, SilentProgress, TerminalProgress


@pytest.fixture
def stream():
    return io.StringIO()


def take(progress, *, fail=False):
    step = progress.step("Letta's [own] environment")
    step.set_total(10.0)
    for _ in range(10):
        step.advance(1.0)
        step.update("numpy [x]")
    if fail:
        step.failed("no [route] to the registry")
    else:
        step.done("0.16.8")


@pytest.fixture
def terminal(stream):
    return TerminalProgress(Console(file=stream, force_terminal=True, width=120))


def test_a_terminal_shows_name_mark_and_result(stream, terminal):
    with terminal:
        take(terminal)
    assert "Letta's [own] environment" in stream.getvalue()
    assert "✓" in stream.getvalue()
    assert "0.16.8" in stream.getvalue()


def test_a_terminal_shows_a_failure(stream, terminal):
    with terminal:
        take(terminal, fail=True)
    assert "✗" in stream.getvalue()
    assert "no [route] to the registry" in stream.getvalue()


def test_lines_show_thirds_and_the_end(stream):
    with LineProgress(stream) as progress:
        take(progress)
    assert [line.rpartition(": ")[2].split()[0] for line in stream.getvalue().splitlines()] == [
        "40%",
        "70%",
        "done",
    ]


def test_lines_show_a_failure(stream):
    with LineProgress(stream) as progress:
        take(progress, fail=True)
    assert stream.getvalue().splitlines()[-1].endswith("failed: no [route] to the registry")


def test_silence_is_silent(capsys):
    take(SilentProgress())
    take(SilentProgress(), fail=True)
    assert capsys.readouterr() == ("", "")
