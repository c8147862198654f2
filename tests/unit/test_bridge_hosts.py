"""Host and Origin: a name the bridge was never given is not answered, on any route."""

from __future__ import annotations

import pytest

from han_solo.bridge.hosts import build_allowed_hosts
from han_solo.settings import Settings

from . import bridge_fakes as fakes

SETTINGS = Settings(
    _env_file=None,
    bridge_url="https://ren.example/mcp",
    bridge_allowed_hosts=("bridge.lan", "other.lan:9000", "10.0.0.7"),
    bridge_allowed_origins=("https://page.example", "http://Localhost:3000/"),
)

HOSTS = [
    ("127.0.0.1:8283", True),
    ("localhost:8283", True),
    ("LocalHost:8283", True),
    ("[::1]:8283", True),
    ("ren.example", True),
    ("ren.example:443", True),
    ("bridge.lan", True),
    ("bridge.lan:1234", True),
    ("other.lan:9000", True),
    ("10.0.0.7:8283", True),
    ("other.lan:9001", False),
    ("other.lan", False),
    ("127.0.0.1:8284", False),
    ("127.0.0.1", False),
    ("localhost", False),
    ("127.0.0.2:8283", False),
    ("evil.example", False),
    ("evil.example:8283", False),
    ("localhost.evil.example:8283", False),
    ("localhost:8283.evil.example", False),
    ("127.0.0.1:8283@evil.example", False),
    ("evil.example@127.0.0.1:8283", False),
    ("127.0.0.1:8283/x", False),
    ("localhost:port", False),
    ("*", False),
    ("", False),
]

ORIGINS = [
    ("http://127.0.0.1:8283", True),
    ("https://127.0.0.1:8283", True),
    ("https://page.example", True),
    ("https://page.example:443", True),
    ("http://localhost:3000", True),
    ("http://page.example", False),
    ("https://page.example:444", False),
    ("https://evil.example", False),
    ("http://127.0.0.1:8284", False),
    ("http://localhost.evil.example:3000", False),
    ("file://", False),
    ("null", False),
    ("", False),
]


@pytest.mark.parametrize(("host", "answered"), HOSTS)
def test_host_list(host, answered):
    assert build_allowed_hosts(SETTINGS, 8283).admits_host(host) is answered


@pytest.mark.parametrize(("origin", "answered"), ORIGINS)
def test_origin_list(origin, answered):
    allowed = build_allowed_hosts(SETTINGS, 8283)
    assert allowed.admits_origin(origin, "127.0.0.1:8283") is answered


@pytest.mark.parametrize(
    ("listening", "host", "answered"),
    [
        ("192.168.1.5", "192.168.1.5:8283", True),
        ("192.168.1.5", "192.168.1.6:8283", False),
        ("0.0.0.0", "0.0.0.0:8283", False),
        ("0.0.0.0", "192.168.1.5:8283", False),
        ("::", "[::1]:8283", True),
    ],
)
def test_address_listened_on_is_answered(listening, host, answered):
    settings = Settings(_env_file=None, bridge_host=listening)
    assert build_allowed_hosts(settings, 8283).admits_host(host) is answered


@pytest.mark.parametrize("path", ["/health", "/ready", "/mcp", "/api/admin/agent-info", "/x"])
async def test_wrong_host_or_origin_is_refused_on_every_route(path):
    headers = fakes.bearer("good-operator")
    async with fakes.serving(fakes.backend()) as client:
        response = await client.get(path, headers={**headers, "Host": "evil.example:8283"})
        assert response.status_code == 421
        assert "HAN_SOLO_BRIDGE_ALLOWED_HOSTS" in response.json()["hint"]
        response = await client.get(path, headers={**headers, "Origin": "http://evil.example"})
        assert response.status_code == 403
        assert "HAN_SOLO_BRIDGE_ALLOWED_ORIGINS" in response.json()["hint"]
        response = await client.get(path, headers={**headers, "Origin": f"http://{fakes.HOST}"})
        assert response.status_code not in {403, 421}


async def test_two_host_headers_are_refused():
    async with fakes.serving(fakes.backend()) as client:
        response = await client.get("/health", headers=[("Host", fakes.HOST), ("Host", "evil")])
    assert response.status_code == 421
