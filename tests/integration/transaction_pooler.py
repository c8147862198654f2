"""A pooler in transaction mode, as small as it can be: what PgBouncer does to a session.

Each client logs in over a server connection of its own, which then goes into one pool. From then on
a client holds a server only while a transaction is open; its next one gets another server, in turn.
So whatever relies on a session (a prepared statement, a ``SET``, a lock) breaks here as it would
there. It serves one role and one database, and cancels nothing.
"""

import asyncio
import contextlib
import struct
from collections import deque

_SSL_REQUEST = 80877103
_CANCEL_REQUEST = 80877102


class TransactionPooler:
    """Listens on loopback and forwards to a server there; an async context manager."""

    def __init__(self, server_port):
        self._server_port = server_port
        self._idle = deque()
        self._freed = asyncio.Condition()
        self._writers = []
        self.port = 0

    async def __aenter__(self):
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exception):
        self._listener.close()
        for writer in self._writers:
            writer.close()
        await asyncio.sleep(0)

    async def _serve(self, reader, writer):
        self._writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            server = await self._log_in(reader, writer)
            if server is not None:
                await self._give_back(server)
                await self._forward(reader, _Client(writer))
        writer.close()

    async def _log_in(self, reader, writer):
        (length,) = struct.unpack("!I", await reader.readexactly(4))
        packet = await reader.readexactly(length - 4)
        (code,) = struct.unpack("!I", packet[:4])
        if code == _SSL_REQUEST:
            writer.write(b"N")
            return await self._log_in(reader, writer)
        if code == _CANCEL_REQUEST:
            return None
        server = await asyncio.open_connection("127.0.0.1", self._server_port)
        self._writers.append(server[1])
        server[1].write(struct.pack("!I", length) + packet)
        while True:
            kind, message = await _read(server[0])
            writer.write(message)
            if kind == b"Z":
                return server
            # Challenges of the password exchange are answered; the last word ("R", 0) is not.
            if kind == b"R" and struct.unpack("!I", message[5:9])[0] in (3, 5, 10, 11):
                server[1].write((await _read(reader))[1])
            elif kind == b"E":
                return None

    async def _forward(self, reader, client):
        try:
            while True:
                kind, message = await _read(reader)
                if kind == b"X":
                    return
                if client.server is None:
                    client.server = await self._take()
                    client.answers = asyncio.ensure_future(self._answer(client))
                client.answers_owed += kind in (b"S", b"Q")
                client.server[1].write(message)
        finally:
            if client.server is not None:  # gone in the middle of a transaction
                client.answers.cancel()
                client.server[1].close()

    async def _answer(self, client):
        """Forward a server's answers until the transaction is over, and take the server away."""
        server = client.server
        while True:
            kind, message = await _read(server[0])
            client.writer.write(message)
            client.answers_owed -= kind == b"Z"
            if kind == b"Z" and message[5:6] == b"I" and not client.answers_owed:
                client.server = None
                return await self._give_back(server)

    async def _take(self):
        async with self._freed:
            await self._freed.wait_for(lambda: self._idle)
            return self._idle.popleft()

    async def _give_back(self, server):
        async with self._freed:
            self._idle.append(server)
            self._freed.notify()


class _Client:
    def __init__(self, writer):
        self.writer = writer
        self.server = None  # the (reader, writer) it holds, while a transaction is open
        self.answers = None
        self.answers_owed = 0


async def _read(reader):
    head = await reader.readexactly(5)
    (length,) = struct.unpack("!I", head[1:])
    return head[:1], head + await reader.readexactly(length - 4)
