"""Child processes of ``up``: nothing inherited, nothing left behind, nothing else touched."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import psutil
import pytest

from han_solo.embedded.processes import (
    ManagedProcess,
    StopStep,
    is_alive,
    last_line,
    pause,
    stop_leftover,
)
from han_solo.errors import EmbeddedError

READY = "print('ready', flush=True)"
SLEEP = f"import time; {READY}; time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); {SLEEP}"


@pytest.fixture
async def start(tmp_path):
    """Start Python code as a managed process and wait until it says that it is ready."""
    started = []

    async def start(code, **more):
        process = ManagedProcess(
            "The part",
            [sys.executable, "-c", code],
            **{"log": tmp_path / "logs" / "part.log", "env": {}, "cwd": tmp_path} | more,
        )
        started.append(process)
        await process.start()
        while process.is_running and "ready" not in process.read_log_tail():
            await pause()
        return process

    yield start
    for process in started:
        await process.stop()


async def test_its_log_is_private(start, tmp_path):
    await start(SLEEP)
    assert (tmp_path / "logs" / "part.log").stat().st_mode & 0o777 == 0o600


async def test_it_inherits_no_environment(start, monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "x")
    process = await start(
        f"import os; print(sorted(os.environ)); {READY}", env={"GIVEN": "1", "LC_ALL": "C"}
    )
    assert "['GIVEN', 'LC_ALL']" in process.read_log_tail()


async def test_it_runs_in_a_session_of_its_own(start):
    process = await start(SLEEP)
    assert os.getsid(process.pid) == process.pid


async def test_stopping_ends_it(start):
    process = await start(SLEEP)
    pid = process.pid
    await process.stop()
    assert not psutil.pid_exists(pid)
    assert process.returncode == -signal.SIGTERM


async def test_one_that_ignores_the_signal_is_killed(start):
    process = await start(STUBBORN, stop=[StopStep(signal.SIGTERM, 0.3)])
    await process.stop()
    assert process.returncode == -signal.SIGKILL


async def test_what_it_started_ends_with_it(start):
    process = await start(PARENT)
    [child] = psutil.Process(process.pid).children()
    await process.stop()
    assert not is_alive(child)


async def test_stopping_twice_is_harmless(start):
    process = await start(SLEEP)
    await process.stop()
    await process.stop()


async def test_a_program_that_is_not_there_is_named(tmp_path):
    process = ManagedProcess(
        "The part", ["/no/such/program"], log=tmp_path / "log", env={}, cwd=tmp_path
    )
    with pytest.raises(EmbeddedError, match="The part can not be started") as caught:
        await process.start()
    assert "/no/such/program" in str(caught.value)


async def test_the_tail_is_of_this_start_only(start):
    await (await start(f"print('first'); {READY}")).stop()
    second = await start(f"print('second'); {READY}")
    assert second.read_log_tail().split() == ["second", "ready"]


async def test_a_big_log_is_put_aside(start, tmp_path):
    log = tmp_path / "logs" / "part.log"
    log.parent.mkdir()
    log.write_bytes(b"x" * 10_000_001)
    await start(SLEEP)
    assert log.with_name("part.log.1").stat().st_size == 10_000_001
    assert log.stat().st_size < 100


class TestLeftover:
    @pytest.fixture
    def pid_file(self, tmp_path):
        return tmp_path / "run" / "part.pid"

    async def test_what_a_killed_run_left_is_stopped_at_the_next_start(self, start, pid_file):
        orphan = await start(SLEEP, pid_file=pid_file)
        again = await start(SLEEP, pid_file=pid_file)
        assert not orphan.is_running
        assert again.is_running

    async def test_it_is_stopped_whole(self, start, pid_file):
        orphan = await start(PARENT, pid_file=pid_file)
        [child] = psutil.Process(orphan.pid).children()
        assert await stop_leftover(pid_file)
        assert not is_alive(child)

    async def test_another_process_of_that_pid_is_left_alone(self, start, pid_file):
        other = await start(SLEEP)
        pid_file.parent.mkdir()
        stored = {"pid": other.pid, "created": time.time() - 3_600}
        pid_file.write_text(json.dumps(stored))
        assert not await stop_leftover(pid_file)
        assert other.is_running
        assert not pid_file.exists()

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1}'])
    async def test_a_spoilt_pid_file_stops_nothing(self, pid_file, text):
        pid_file.parent.mkdir()
        pid_file.write_text(text)
        assert not await stop_leftover(pid_file)

    async def test_a_clean_stop_removes_the_pid_file(self, start, pid_file):
        process = await start(SLEEP, pid_file=pid_file)
        assert pid_file.stat().st_mode & 0o777 == 0o600
        await process.stop()
        assert not pid_file.exists()


def test_the_last_line_says_something():
    assert last_line("one\n two.\n\n") == "two"
    assert last_line("") == ""
