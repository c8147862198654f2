"""The README's first command, in a fresh clone with an empty home."""

import re
import subprocess
import sys

import pytest

from tests.fresh_clone import TOP, fresh_clone, processes_of

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def clone():
    with fresh_clone() as clone:
        yield clone


@pytest.fixture(scope="module")
def first(clone):
    return clone.run("scripts/up", "--check")


def test_a_newcomer_gets_proof_with_one_command(first):
    assert first.code == 0, first.output
    assert "check passed" in first.output
    assert re.search(r"text=han-solo check [0-9a-f]{12}", first.output)
    assert "rehearsal model" in first.output


def test_a_second_run_uses_what_is_there(clone, first):
    second = clone.run("scripts/up", "--check")
    assert second.code == 0, second.output
    agents = [re.search(r"agent-[0-9a-f-]{36}", done.output) for done in (first, second)]
    assert agents[0][0] == agents[1][0]
    ports = [set(re.findall(r"127\.0\.0\.1:(\d+)", done.output)) for done in (first, second)]
    assert ports[0] == ports[1]
    assert "Setting up han-solo in .venv" not in second.output


def test_nothing_is_left_running(clone, first):
    assert processes_of(clone.root) == []


def test_the_wheel_alone_gives_the_same_command(clone, first, tmp_path):
    wheel = build_wheel(tmp_path)
    environment = {"UV_CACHE_DIR": str(clone.root / "uv-cache")}
    uvx = clone.checkout / ".venv" / "bin" / "uvx"
    done = clone.run(
        str(uvx), "--python", sys.executable, "--from", str(wheel), "han-solo", "up", "--check",
        **environment,
    )  # fmt: skip
    assert done.code == 0, done.output
    assert "check passed" in done.output


def build_wheel(folder):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=TOP,
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))
