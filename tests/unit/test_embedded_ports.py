"""Ports: free ones below those that outgoing connections are lent, taken ones refused by name."""

from __future__ import annotations

import os
import socket

import pytest

from han_solo.embedded.ports import find_free_port, refuse_taken_port
from han_solo.errors import EmbeddedError


@pytest.fixture
def taken():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_free_port_can_be_bound():
    port = find_free_port()
    assert 20_000 <= port < 32_000
    refuse_taken_port(port, "the part")


def test_a_taken_port_is_refused_with_its_number_and_use(taken):
    with pytest.raises(EmbeddedError, match=rf"^Port {taken}, which is kept for the part, is in "):
        refuse_taken_port(taken, "the part")


@pytest.mark.skipif(os.geteuid() != 0, reason="macOS tells others' ports to root only")
def test_the_process_that_has_it_is_named(taken):
    with pytest.raises(EmbeddedError, match=rf"process {os.getpid()}\)"):
        refuse_taken_port(taken, "the part")
