"""A service for embeddings, on a port if need be, that fails as a test says."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from han_solo.clock import Clock
from han_solo.embed.model import EmbedderName, Kind
from han_solo.embed.remote import Endpoint, RemoteEmbedder
from han_solo.memory.vectors import Vectors
from han_solo.store.database import Database

SERVICE = EmbedderName("openai", "small", 8)


class NoWait(Clock):
    """The real time, and pauses that take none of it."""

    async def sleep(self, delay_s: float) -> None:
        """Go on at once."""


@dataclass(frozen=True)
class Fault:
    """How a service fails. ``vectors`` changes what it would have answered; ``drops``: none."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    vectors: Callable[[list[list[float]]], list[list[float]]] | None = None
    drops: bool = False
    hangs: bool = False


@dataclass
class EmbeddingService:
    """Answers with a vector of words for each text, or fails."""

    width: int = SERVICE.width
    fault: Fault | None = None
    asked: list[str] = field(default_factory=list)

    def answer(self, texts: list[str]) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body."""
        fault = self.fault or Fault()
        if fault.status != HTTPStatus.OK or fault.body is not None:
            return fault.status, fault.headers, fault.body or b""
        vectors = [self._embed(text) for text in texts]
        if fault.vectors is not None:
            vectors = fault.vectors(vectors)
        else:
            self.asked += texts
        rows = [{"index": number, "embedding": found} for number, found in enumerate(vectors)]
        return 200, {}, json.dumps({"data": rows}).encode()

    def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer without a network."""
        status, headers, body = self.answer(json.loads(request.content)["input"])
        return httpx.Response(status, headers=dict(headers), content=body)

    def _embed(self, text: str) -> list[float]:
        vector = [0.01] * self.width
        for word in text.lower().split():
            vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.width] += 1.0
        return vector

    def open(self, name: EmbedderName = SERVICE) -> RemoteEmbedder:
        """Return an embedder that asks this service, without a network."""
        endpoint = Endpoint("https://embed.example/v1/embeddings", "key")
        return RemoteEmbedder(
            name,
            endpoint,
            timeout_s=5,
            clock=NoWait(),
            transport=httpx.MockTransport(self.handle),
        )

    def open_vectors(self, db: Database) -> Vectors:
        """Return the vectors of a memory that begins with this service."""
        return Vectors(db, SERVICE, self.open)


class EmbeddingServer:
    """The service on a port of its own. ``pauses_after`` so many texts it waits for ``go_on``."""

    def __init__(self, service: EmbeddingService) -> None:
        self.service = service
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self.pauses_after: int | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer._answer(self)

            def log_message(self, *_arguments: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def open(self, name: EmbedderName) -> RemoteEmbedder:
        """Return an embedder that asks this server, in the provider's own words."""
        kinds: dict[Kind, str] = {"passage": "document", "query": "query"}
        endpoint = Endpoint(
            f"{self.url}/embeddings", "key", kinds=kinds if name.provider == "voyage" else None
        )
        return RemoteEmbedder(name, endpoint, timeout_s=0.2, clock=NoWait())

    def close(self) -> None:
        """End it; afterwards its port refuses."""
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        texts = json.loads(handler.rfile.read(int(handler.headers["content-length"])))["input"]
        if self.pauses_after is not None and len(self.service.asked) > self.pauses_after:
            self.asked.set()
            self.go_on.wait(60)
        fault = self.service.fault
        if fault and fault.hangs:
            self.go_on.wait(5)
        if fault and (fault.drops or fault.hangs):
            handler.close_connection = True
            return
        status, headers, body = self.service.answer(texts)
        with contextlib.suppress(OSError):  # who asked was killed
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("content-length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
