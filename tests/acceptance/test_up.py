"""``han-solo up`` as an operator meets it: keys, interruptions, and what is refused."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from han_solo.embedded.ports import find_free_port
from tests.fresh_clone import TOP, processes_of
from tests.servers import cache_directory, open_directory

pytestmark = [pytest.mark.deep, pytest.mark.timeout(600)]

HAN_SOLO = str(TOP / ".venv" / "bin" / "han-solo")


@pytest.fixture(scope="module")
def state():
    with open_directory() as path:
        yield path / "state"


def environment(state, **more):
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(state.parent),
        "HAN_SOLO_HOME": str(state),
        "HAN_SOLO_CACHE": str(cache_directory()),
        **more,
    }


def han_solo(state, *arguments, **more):
    return subprocess.run(
        [sys.executable, "-m", "han_solo", *arguments],
        cwd=state.parent,
        env=environment(state, **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def start_up(state, **more):
    """Start ``up`` in the background and return once it says that it runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "han_solo", "up"],
        cwd=state.parent,
        env=environment(state, PYTHONUNBUFFERED="1", **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith("Running."):
            return process, "".join(said)
    raise AssertionError("".join(said))


@pytest.fixture(scope="module")
def checked(state):
    done = han_solo(state, "up", "--check")
    assert done.returncode == 0, done.stdout
    return done.stdout


def agent_in(text):
    return re.search(r"agent-[0-9a-f-]{36}", text)[0]


def test_ctrl_c_stops_every_part_and_loses_nothing(state, checked):
    process, said = start_up(state)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert "Stopped; nothing was lost." in rest
    assert processes_of(state) == []
    assert agent_in(said) == agent_in(checked)


def test_the_check_works_beside_a_running_up_and_status_says_all_is_well(state, checked):
    process, _ = start_up(state)
    try:
        done = han_solo(state, "up", "--check")
        assert done.returncode == 0, done.stdout
        assert "runs already" in done.stdout
        assert han_solo(state, "status").returncode == 0
        second = han_solo(state, "up")
        assert second.returncode == 2
        assert f"already runs here (process {process.pid})" in second.stdout
        assert han_solo(state, "sync-tools", "--dry-run").returncode == 0
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def test_a_part_that_dies_is_started_again(state, checked):
    process, said = start_up(state)
    try:
        url = re.search(r"Bridge and agent: .*(http://127\.0\.0\.1:\d+)", said)[1]
        pid = int(re.search(r'"pid": (\d+)', (state / "run" / "bridge.pid").read_text())[1])
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 90
        for line in process.stdout:
            if "runs again" in line or time.monotonic() > deadline:
                break
        assert httpx.get(f"{url}/health", timeout=10).json()["status"] == "ok"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def test_after_a_kill_9_the_next_start_clears_up_and_goes_on(state, checked):
    process, _ = start_up(state)
    process.kill()
    process.communicate(timeout=60)
    assert processes_of(state)  # the parts live on without their supervisor
    done = han_solo(state, "up", "--check")
    assert done.returncode == 0, done.stdout
    assert agent_in(done.stdout) == agent_in(checked)
    assert processes_of(state) == []


def test_a_kept_port_that_someone_took_is_named_and_nothing_is_changed(state, checked):
    endpoints = (state / "run" / "endpoints.json").read_text()
    port = json.loads(endpoints)["bridge_port"]
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        done = han_solo(state, "up", "--check")
    assert done.returncode == 2
    assert f"Port {port}, which is kept for the bridge, is in use by" in done.stdout
    assert (state / "run" / "endpoints.json").read_text() == endpoints
    assert processes_of(state) == []


def test_a_model_key_takes_the_agent_off_the_rehearsal_model_and_never_back(state, checked):
    port = find_free_port()
    model = subprocess.Popen([sys.executable, "-m", "tests.second_model", str(port)], cwd=TOP)
    key = {
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "HAN_SOLO_MODEL": "openai-proxy/second",
    }
    try:
        done = han_solo(state, "up", "--check", **key)
    finally:
        model.terminate()
        model.wait()
    assert done.returncode == 0, done.stdout
    assert "on openai-proxy/second" in done.stdout
    assert agent_in(done.stdout) == agent_in(checked)
    forgotten = han_solo(state, "up", "--check")
    assert forgotten.returncode == 2
    assert "runs openai-proxy/second, and no model key is set" in forgotten.stdout


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"HAN_SOLO_AGENT_SPEC": "missing.toml"}, "missing.toml"),
        ({"HAN_SOLO_BRIDGE_PORT": "x"}, "HAN_SOLO_BRIDGE_PORT"),
        ({"HAN_SOLO_EXTENSIONS": "/nowhere/at/all"}, "/nowhere/at/all"),
        ({"OPENAI_API_KEY": "k"}, "GEMINI_API_KEY"),
        ({"LETTA_BASE_URL": "http://127.0.0.1:9"}, "127.0.0.1:9"),
        ({"HAN_SOLO_DATABASE_URL": "postgresql://u:hunter2@127.0.0.1:9/d"}, "127.0.0.1:9"),
    ],
)
def test_what_can_not_be_used_is_one_sentence_and_exit_code_2(settings, sentence):
    with open_directory() as path:
        done = han_solo(path / "state", "up", "--check", **settings)
    assert done.returncode == 2, done.stdout
    assert sentence in done.stdout
    assert "Traceback" not in done.stdout
    assert "hunter2" not in done.stdout
