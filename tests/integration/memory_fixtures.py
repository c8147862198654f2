"""What tests and benches of passages share: memories with the local embedder, or a made-up one."""

import contextlib
import hashlib

import numpy as np

from han_solo.embed.local import LocalEmbedder
from han_solo.embed.model import EmbedderName
from han_solo.embed.weights import MODEL, WIDTH, fetch_weights
from han_solo.memory.passages import Passages
from han_solo.memory.vectors import Vectors
from han_solo.principals import MEMORY_READ, MEMORY_WRITE, Principal

from .store_fixtures import migrated

REN = Principal("ren", "agent", frozenset({MEMORY_READ, MEMORY_WRITE}), agent_id="agent-1")
BENCH = Principal("bench", "client", frozenset({MEMORY_READ, MEMORY_WRITE}))
LOCAL = EmbedderName("local", MODEL, WIDTH)


class BagOfWords:
    """An embedder that needs nothing: each word is a direction. It fails when told to."""

    def __init__(self, name=LOCAL):
        self.name = name
        self.failure = None
        self.texts = []

    async def embed(self, texts, kind):
        if self.failure is not None:
            raise self.failure
        self.texts += texts
        rows = np.zeros((len(texts), self.name.width), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.name.width] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    async def close(self):
        pass


@contextlib.asynccontextmanager
async def open_passages(url, cache, **options):
    """Yield a memory in that database, with the real local embedder."""
    await fetch_weights(cache, lambda _word: None)
    local = LocalEmbedder(cache)
    async with migrated(url, **options) as db:
        yield Passages(db, Vectors(db, LOCAL, lambda _name: local))
