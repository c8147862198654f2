"""What tests and benches of passages share: memories with the local embedder, or a made-up one."""

import contextlib
import hashlib
import os
import subprocess
import sys

import numpy as np

from han_solo.embed.local import LocalEmbedder
from han_solo.embed.local_models import POTION
from han_solo.embed.model import EmbedderName
from han_solo.embed.weights import fetch_weights
from han_solo.memory.passages import Passages
from han_solo.memory.vectors import Vectors
from han_solo.principals import MEMORY_READ, MEMORY_WRITE, Principal

from .store_fixtures import migrated

REN = Principal("ren", "agent", frozenset({MEMORY_READ, MEMORY_WRITE}), agent_id="agent-1")
BENCH = Principal("bench", "client", frozenset({MEMORY_READ, MEMORY_WRITE}))
LOCAL = EmbedderName("local", POTION.name, POTION.width)
MAIN = "import sys; sys.argv[1:1] = ['memory']; from han_solo.cli.main import main; main()"


def make_cli(database_url, tmp_path, cache):
    """Return what runs ``han-solo memory`` with its arguments, in an environment of its own."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HAN_SOLO_HOME": str(tmp_path / "home"),
        "HAN_SOLO_CACHE": str(cache),
        "HAN_SOLO_DATABASE_URL": database_url,
        "HAN_SOLO_TIMEZONE": "Europe/Berlin",
    }

    def run(*arguments, **options):
        return subprocess.run(
            [sys.executable, "-c", MAIN, *arguments],
            **(
                {
                    "env": environment,
                    "cwd": tmp_path,
                    "capture_output": True,
                    "text": True,
                    "stdin": None if "input" in options else subprocess.DEVNULL,
                }
                | options
            ),
            check=False,
        )

    run.environment = environment
    return run


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
