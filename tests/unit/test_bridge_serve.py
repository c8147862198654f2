"""The port, the address, and what is said in the log."""

from __future__ import annotations

import json
import logging
import socket

import pytest
import structlog
from structlog.testing import capture_logs

from han_solo import logs
from han_solo.bridge import serve
from han_solo.connections import Connections
from han_solo.errors import BridgeError, SettingsError
from han_solo.settings import Settings

from . import bridge_fakes as fakes


@pytest.fixture
def connections(tmp_path):
    found = Connections(Settings(_env_file=None, home=tmp_path / "home"))
    found.home.create()
    return found


def test_a_free_port_is_taken_and_kept(connections):
    with serve.take_port(connections) as listener:
        port = listener.getsockname()[1]
    assert connections.bridge_port == port
    with serve.take_port(connections) as listener:
        assert listener.getsockname()[1] == port


def test_a_taken_port_is_said_and_no_other_is_taken(connections):
    with serve.take_port(connections):
        port = connections.bridge_port
        with pytest.raises(BridgeError, match=f"can not listen on 127.0.0.1:{port}"):
            serve.take_port(connections)
    assert connections.bridge_port == port


def test_the_socket_says_tcp_so_that_answers_are_not_held_back(connections):
    with serve.take_port(connections) as listener:
        assert listener.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
    ],
)
def test_loopback_is_known(host, loopback):
    assert serve.is_loopback(host) is loopback


def test_a_name_is_no_address():
    with pytest.raises(SettingsError, match="HAN_SOLO_BRIDGE_HOST"):
        serve.is_loopback("bridge.example")


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ({}, False),
        ({"bridge_host": "0.0.0.0"}, True),
        ({"bridge_host": "0.0.0.0", "bridge_url": "https://ren.example/mcp"}, False),
    ],
)
def test_an_exposed_address_without_a_url_is_warned_of(options, warned):
    with capture_logs() as logged:
        serve._warn_if_exposed(Settings(_env_file=None, **options))
    assert ("bridge.exposed" in [line["event"] for line in logged]) is warned


@pytest.fixture
def json_log(capfd):
    """Log as JSON into the test's own stderr, and as before afterwards."""
    before = structlog.get_config()
    handlers = logging.root.handlers[:]
    logs.configure(level="info", fmt="json")
    yield capfd
    structlog.configure(**before)
    logging.root.handlers[:] = handlers


async def test_log_of_a_fault_is_json_with_its_secrets_taken_out(json_log):
    async with fakes.serving(fakes.backend()) as client:
        await fakes.call(client, "good-agent", "break_down")
        await fakes.call(client, "good-agent", "find_missing")
        await fakes.call(client, "good-agent", "echo", text="x" * 30)
    written = json_log.readouterr().err
    lines = [json.loads(line) for line in written.splitlines()]  # nothing else writes there
    [fault] = [line for line in lines if line["event"] == "bridge.fault_raised"]
    assert "RuntimeError" in fault["exception"]
    assert "hunter2" not in written
    assert "secretsecret" not in written
