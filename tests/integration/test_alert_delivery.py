"""Alerts as they arrive: a real apprise URL, and a server that listens or does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from han_solo.daemon.alerts import Alerts
from tests.integration.runner_fixtures import NAME, found, open_desk


@dataclass
class Hook:
    """A web server that keeps what it is sent; ``status`` is what it answers."""

    url: str = ""
    status: int = 200
    bodies: list[dict[str, Any]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().splitlines()
            if line.startswith(b"content-length")
        )
        body = json.loads(await reader.readexactly(length))
        if self.status == 200:
            self.bodies.append(body)
        writer.write(f"HTTP/1.1 {self.status} X\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    opened = Hook()
    server = await asyncio.start_server(opened.serve, "127.0.0.1", 0)
    opened.url = f"json://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?token=secret"
    async with server:
        yield opened


async def test_a_finding_arrives_once_and_one_that_failed_arrives_later(
    hook: Hook, database_url: str
) -> None:
    async with open_desk(database_url) as desk:
        desk.pager = Alerts.connect(NAME, [SecretStr(hook.url)])  # type: ignore[assignment]
        desk.world["g"] = [found("a", severity="critical")]
        hook.status = 500
        with capture_logs() as logs:
            await desk.run(desk.guard("g"))
        (warning,) = [entry for entry in logs if entry["event"] == "alert.send_failed"]
        assert "JSON (number 1 of HAN_SOLO_ALERT_URLS) did not take the alert" in warning["reason"]
        assert "secret" not in json.dumps(logs, default=str)
        hook.status = 200
        with capture_logs():
            for _ in range(3):
                desk.wait(minutes=2)
                await desk.run(desk.guard("g"))

    (body,) = hook.bodies
    assert body["title"] == "ren: 1 finding, 1 critical"
    assert body["message"] == "[critical] g, 2030-01-02 03:04 UTC: a is wrong.\nMend it."
    assert body["type"] == "failure"


async def test_each_of_two_hooks_is_told_once_though_one_was_away(
    hook: Hook, database_url: str
) -> None:
    other = Hook(status=503)
    server = await asyncio.start_server(other.serve, "127.0.0.1", 0)
    url = f"json://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, open_desk(database_url) as desk:
        desk.pager = Alerts.connect(NAME, [SecretStr(hook.url), SecretStr(url)])  # type: ignore[assignment]
        desk.world["g"] = [found("a")]
        with capture_logs():
            await desk.run(desk.guard("g"))
            other.status = 200
            desk.wait(minutes=1)
            await desk.run(desk.guard("g"))
    assert len(hook.bodies) == len(other.bodies) == 1


async def test_nobody_listens_and_the_guards_go_on(database_url: str) -> None:
    async with open_desk(database_url) as desk:
        desk.pager = Alerts.connect(NAME, [SecretStr("json://127.0.0.1:9/")])  # type: ignore[assignment]
        desk.world["g"] = [found("a")]
        with capture_logs():
            (report,) = await desk.run(desk.guard("g"))
    assert report.outcome == "found"


async def test_urls_with_words_in_the_log_of_apprise_are_not_logged(
    hook: Hook, capfd: pytest.CaptureFixture[str]
) -> None:
    hook.status = 500
    sender = Alerts.connect(NAME, [SecretStr(hook.url)])
    with pytest.raises(Exception, match="did not take"):
        await sender.test()
    out, err = capfd.readouterr()
    assert "secret" not in out + err
