"""What the tests of the running bridge share: a bridge in this process, and a cable to cut."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from han_solo.bridge.backend import BridgeBackend
from han_solo.bridge.letta import Letta
from han_solo.bridge.serve import run_app, take_port
from han_solo.connections import Connections
from han_solo.letta.gateway import LettaGateway
from han_solo.settings import Settings


class AsActor(httpx.AsyncHTTPTransport):
    """Sends a user's id with each request, so that Letta serves that user's organisation."""

    def __init__(self, user_id):
        super().__init__()
        self._user_id = user_id

    async def handle_async_request(self, request):
        request.headers["user_id"] = self._user_id
        return await super().handle_async_request(request)


def connect_letta(url, password=None, user_id=None):
    def connect():
        transport = AsActor(user_id) if user_id else None
        return LettaGateway.connect(url, password, timeout_s=20, transport=transport)

    return Letta(gateway=connect(), blocks=connect())


@dataclass
class RunningBridge:
    backend: BridgeBackend
    url: str
    client: httpx.AsyncClient

    def token(self, name="operator"):
        return self.backend.connections.home.read_token(name)

    def headers(self, name="operator"):
        return {"Authorization": f"Bearer {self.token(name)}"}

    async def health(self):
        return (await self.client.get("/health")).json()

    async def wait_health(self, is_so, timeout_s=60):
        """Wait until the health is as wanted, and return it."""
        async with asyncio.timeout(timeout_s):
            while not is_so(found := await self.health()):
                await asyncio.sleep(0.05)
        return found


@contextlib.asynccontextmanager
async def running(tmp_path, registry, *, letta, database_url, agent_name, rights=None, **options):
    """Run a bridge in this process as ``han-solo bridge`` does."""
    settings = Settings(
        _env_file=None, home=tmp_path / "home", database_url=database_url, **options
    )
    connections = Connections(settings)
    connections.home.create()
    backend = BridgeBackend(connections, agent_name, registry, letta, rights=rights)
    listener = take_port(connections)
    stop = asyncio.Event()
    serving = asyncio.create_task(run_app(registry, backend, listener, stop))
    url = connections.bridge_local_url
    try:
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            bridge = RunningBridge(backend, f"{url}/mcp", client)
            yield bridge
    finally:
        stop.set()
        await serving
        await backend.close()
        listener.close()


class Cable:
    """A TCP proxy that can be cut (connections are refused at once) or held (nothing passes)."""

    def __init__(self, url):
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self._url = parts
        self._writers = set()
        self.is_cut = False
        self._passing = asyncio.Event()
        self._passing.set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        netloc = self._url.netloc.rpartition(":")[0] + f":{port}"
        self.url = self._url._replace(netloc=netloc).geturl()
        return self

    async def __aexit__(self, *_error):
        self.let_go()
        self.cut()
        self._server.close()
        await self._server.wait_closed()

    @property
    def is_in_use(self):
        return bool(self._writers)

    def cut(self):
        self.is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def mend(self):
        self.is_cut = False

    def hold(self):
        """Keep every connection, old and new, and pass nothing on, as a hung server does."""
        self._passing.clear()

    def let_go(self):
        self._passing.set()

    async def _serve(self, reader, writer):
        if self.is_cut:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        pair = {writer, far_writer}
        self._writers |= pair
        try:
            await asyncio.gather(
                _copy(reader, far_writer, self._passing), _copy(far_reader, writer, self._passing)
            )
        finally:
            self._writers -= pair
            for each in pair:
                each.close()


async def _copy(reader, writer, passing):
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            await passing.wait()
            writer.write(piece)
            await writer.drain()
    writer.close()
