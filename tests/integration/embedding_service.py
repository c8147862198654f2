"""A service for embeddings that speaks OpenAI's protocol and fails as a test says."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

import httpx

from han_solo.clock import Clock
from han_solo.embed.model import EmbedderName
from han_solo.embed.remote import Endpoint, RemoteEmbedder
from han_solo.memory.vectors import Vectors
from han_solo.store.database import Database

SERVICE = EmbedderName("openai", "small", 8)


class NoWait(Clock):
    """The real time, and pauses that take none of it."""

    async def sleep(self, delay_s: float) -> None:
        """Go on at once."""


@dataclass
class EmbeddingService:
    """Answers with a vector of words for each text; ``answer`` replaces it, or each vector."""

    width: int = SERVICE.width
    answer: httpx.Response | Exception | list[float] | None = None
    asked: list[str] = field(default_factory=list)

    def handle(self, request: httpx.Request) -> httpx.Response:
        texts = json.loads(request.content)["input"]
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(self.answer, httpx.Response):
            return httpx.Response(
                self.answer.status_code,
                headers={"retry-after": self.answer.headers.get("retry-after", "1")},
                content=self.answer.content,
            )
        self.asked += texts
        vectors = [self.answer or self._embed(text) for text in texts]
        rows = [{"index": number, "embedding": found} for number, found in enumerate(vectors)]
        return httpx.Response(200, text=json.dumps({"data": rows}))

    def _embed(self, text: str) -> list[float]:
        vector = [0.01] * self.width
        for word in text.lower().split():
            vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.width] += 1.0
        return vector

    def open(self, name: EmbedderName = SERVICE) -> RemoteEmbedder:
        """Return an embedder that asks this service."""
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
