"""The daemon that ``up`` runs: Postgres and Letta die under it, and it dies itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.test_up import agent_in, han_solo, start_up
from tests.fresh_clone import processes_of
from tests.servers import open_directory

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]

OFTEN = {"HAN_SOLO_GUARD_EVERY_S": "reasoner_off=1"}


@pytest.fixture
def state() -> Iterator[Path]:
    with open_directory() as path:
        yield path / "state"


def test_a_daemon_outlives_postgres_and_letta_and_up_outlives_the_daemon(state: Path) -> None:
    up, said = start_up(state, **OFTEN)
    try:
        agent_id = agent_in(said)
        pid = pid_of(state, "daemon")
        assert wait(lambda: leader(state)) == f"process {pid}"

        for part in ("letta", "postgres"):
            os.kill(pid_of(state, part), signal.SIGKILL)
        wait(lambda: events(state, "daemon.database_back"))
        wait(lambda: leader(state) == f"process {pid}")
        assert len(events(state, "daemon.database_away")) == 1
        wait(lambda: is_well(state, agent_id))

        spoil(state, agent_id)
        assert not is_well(state, agent_id)
        wait(lambda: is_well(state, agent_id), timeout_s=60)

        os.kill(pid, signal.SIGKILL)
        wait(lambda: pid_of(state, "daemon") != pid)
        successor = pid_of(state, "daemon")
        wait(lambda: leader(state) == f"process {successor}")
        spoil(state, agent_id)
        wait(lambda: is_well(state, agent_id), timeout_s=60)
    finally:
        up.send_signal(signal.SIGTERM)
        up.communicate(timeout=120)
    assert processes_of(state) == []
    assert [line["event"] for line in log(state)][-1] == "daemon.stopped"


def wait(holds: Callable[[], Any], timeout_s: float = 180) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return found


def pid_of(state: Path, part: str) -> int:
    if part == "postgres":
        (pid_file,) = state.rglob("postmaster.pid")
        return int(pid_file.read_text(encoding="utf-8").split()[0])
    (pid_file,) = state.rglob(f"{part}.pid")
    return int(json.loads(pid_file.read_text(encoding="utf-8"))["pid"])


def log(state: Path) -> list[dict[str, Any]]:
    text = (state / "logs" / "daemon.log").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def events(state: Path, name: str) -> list[dict[str, Any]]:
    return [line for line in log(state) if line["event"] == name]


def leader(state: Path) -> str | None:
    """Return who leads, as ``status`` says."""
    done: subprocess.CompletedProcess[str] = han_solo(state, "status", "--json")
    (row,) = [row for row in json.loads(done.stdout)["parts"] if row["name"] == "daemon"]
    return str(row["address"]).partition(" on ")[0] or None if row["level"] == "ok" else None


def spoil(state: Path, agent_id: str) -> None:
    """Set the reasoner behind our back."""
    config = letta(state, "GET", agent_id)["llm_config"]
    letta(state, "PATCH", agent_id, {"llm_config": config | {"enable_reasoner": True}})


def is_well(state: Path, agent_id: str) -> bool:
    try:
        config = letta(state, "GET", agent_id)["llm_config"]
    except httpx.HTTPError:
        return False
    return not config["enable_reasoner"]


def letta(state: Path, method: str, agent_id: str, body: Any = None) -> Any:
    endpoints = json.loads((state / "run" / "endpoints.json").read_text(encoding="utf-8"))
    password = (state / "secrets" / "letta_password").read_text(encoding="utf-8").strip()
    answer = httpx.request(
        method,
        f"http://127.0.0.1:{endpoints['letta_port']}/v1/agents/{agent_id}",
        headers={"Authorization": f"Bearer {password}"},
        json=body,
        timeout=60,
    )
    answer.raise_for_status()
    return answer.json()
