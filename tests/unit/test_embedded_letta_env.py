"""Letta's environment: one build, whole or not at all, with progress; uv itself is a stand-in."""

from __future__ import annotations

import asyncio
import re
import sys
from importlib import resources
from pathlib import Path

import pytest

from han_solo.embedded import letta_env
from han_solo.embedded.letta_env import ensure_letta_env
from han_solo.embedded.progress import SilentProgress
from han_solo.errors import EmbeddedError

FAKE_UV = """#!/bin/sh
echo "$1" >> {calls}
case "$1" in
venv) for last; do :; done; mkdir -p "$last/bin"; ln -s {python} "$last/bin/python" ;;
pip) echo "Downloading letta (1.5MiB)" >&2
     echo "Downloading small (512.0KiB)" >&2
     echo " Downloaded letta" >&2
     {pip} ;;
esac
"""


class Recorded:
    """A step that remembers how far it came."""

    def __init__(self):
        self.total = self.at = 0.0
        self.ended = None

    def step(self, _name, total=None):
        return self

    def set_total(self, total):
        self.total = total

    def advance(self, amount):
        self.at += amount

    def update(self, text):
        pass

    def done(self, text):
        self.ended = ("done", text)

    def failed(self, text):
        self.ended = ("failed", text)


@pytest.fixture
def fake_uv(tmp_path, monkeypatch):
    """Put a stand-in in uv's place; gives the list of its calls and a way to change ``pip``."""
    calls, program = tmp_path / "calls", tmp_path / "uv"

    def write(pip="true"):
        program.write_text(FAKE_UV.format(calls=calls, python=sys.executable, pip=pip))
        program.chmod(0o755)
        return lambda: calls.read_text().split()

    write()
    monkeypatch.setattr(letta_env.uv, "find_uv_bin", lambda: str(program))
    return write


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


async def test_a_whole_one_is_used_again(fake_uv, cache):
    calls = fake_uv()
    first = await ensure_letta_env(cache, SilentProgress())
    second = await ensure_letta_env(cache, SilentProgress())
    assert first == second
    assert calls() == ["venv", "pip"]


async def test_its_name_holds_version_lock_and_python(fake_uv, cache):
    python = await ensure_letta_env(cache, SilentProgress())
    version = f"py{sys.version_info.major}.{sys.version_info.minor}"
    assert re.fullmatch(rf"letta-0\.16\.8-[0-9a-f]{{12}}-{version}", python.parts[-3])


async def test_two_at_once_build_one(fake_uv, cache):
    calls = fake_uv(pip="sleep 0.5")
    await asyncio.gather(*(ensure_letta_env(cache, SilentProgress()) for _ in range(3)))
    assert calls() == ["venv", "pip"]


async def test_a_failure_is_one_sentence_with_the_log(fake_uv, cache):
    fake_uv(pip='echo "error: no route to the registry." >&2; echo "hint: try" >&2; exit 1')
    with pytest.raises(EmbeddedError, match="can not be built: error: no route to the") as caught:
        await ensure_letta_env(cache, SilentProgress())
    log = re.search(r"(/\S+\.log)", str(caught.value))[1]
    assert "Downloading letta" in Path(log).read_text()


async def test_a_failed_build_is_not_used_but_made_anew(fake_uv, cache):
    fake_uv(pip="exit 1")
    with pytest.raises(EmbeddedError):
        await ensure_letta_env(cache, SilentProgress())
    calls = fake_uv()
    await ensure_letta_env(cache, SilentProgress())
    assert calls() == ["venv", "pip", "venv", "pip"]


async def test_a_cancelled_build_is_made_anew(fake_uv, cache):
    calls = fake_uv(pip="exec sleep 60")
    building = asyncio.create_task(ensure_letta_env(cache, SilentProgress()))
    while not (cache.parent / "calls").exists() or "pip" not in calls():
        await asyncio.sleep(0.01)
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    fake_uv()
    await ensure_letta_env(cache, SilentProgress())
    assert calls() == ["venv", "pip", "venv", "pip"]


async def test_one_whose_interpreter_is_gone_is_made_anew(fake_uv, cache):
    calls = fake_uv()
    python = await ensure_letta_env(cache, SilentProgress())
    python.unlink()
    python.symlink_to("/no/such/python")
    await ensure_letta_env(cache, SilentProgress())
    assert calls() == ["venv", "pip", "venv", "pip"]


async def test_a_cache_that_can_not_be_made_is_named(fake_uv, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddedError, match=r"cache directory .* can not be made"):
        await ensure_letta_env(tmp_path / "file" / "cache", SilentProgress())


async def test_the_bar_follows_the_megabytes(fake_uv, cache):
    fake_uv()
    step = Recorded()
    await ensure_letta_env(cache, step)
    assert (step.total, step.at) == (2.0, 1.5)
    assert step.ended == ("done", "0.16.8")


async def test_a_failed_step_says_so(fake_uv, cache):
    fake_uv(pip="exit 1")
    step = Recorded()
    with pytest.raises(EmbeddedError):
        await ensure_letta_env(cache, step)
    assert step.ended[0] == "failed"


class TestLock:
    lock = resources.files("han_solo.embedded").joinpath("letta.lock").read_text()

    def test_it_names_no_registry(self):
        assert "://" not in self.lock

    def test_each_requirement_is_exact_and_has_hashes(self):
        requirements = re.split(r"\n(?=\S)", self.lock.strip())
        assert len(requirements) > 100
        for requirement in requirements:
            assert re.match(r"\S+==\S+", requirement)
            assert "--hash=sha256:" in requirement

    def test_it_locks_what_is_asked_for(self):
        asked = resources.files("han_solo.embedded").joinpath("letta.in").read_text()
        assert "letta[server]==0.16.8" in asked
        for name in re.findall(r"^([a-z]+)", asked, re.MULTILINE):
            assert re.search(rf"^{name}==", self.lock, re.MULTILINE), name
