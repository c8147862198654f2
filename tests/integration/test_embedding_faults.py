"""A provider that fails, and a switch that is killed: everything is written, and found by words."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from han_solo.embed.weights import fetch_weights
from han_solo.errors import EmbeddingFailed
from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from tests.integration.embedding_service import SERVICE, EmbeddingService
from tests.integration.memory_fixtures import REN
from tests.integration.store_fixtures import migrated

FAULTS = {
    "limited": (httpx.Response(429), "limits our rate"),
    "limited for long": (httpx.Response(429, headers={"retry-after": "3600"}), "limits our rate"),
    "timeout": (httpx.ReadTimeout("slow"), "did not answer within 5 s"),
    "away": (httpx.ConnectError("refused"), "is not reached"),
    "key": (httpx.Response(401), "does not accept the key"),
    "broken": (httpx.Response(500), "refused to embed"),
    "no JSON": (httpx.Response(200, text="<html>"), "something else than vectors"),
    "too few": (httpx.Response(200, json={"data": []}), "with 0 vectors"),
    "width": ([1.0, 2.0], "returned vectors of 2 numbers, and 8 are expected"),
    "no number": ([math.nan] * 8, "a number in it that is none"),
}


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_costs_a_vector_and_nothing_else(db, fault):
    service = EmbeddingService()
    passages = Passages(db, service.open_vectors(db))
    first = await passages.insert(REN, Draft(text="A heron at the pond."))
    service.answer, sentence = FAULTS[fault]

    written = await passages.insert(REN, Draft(text="The ferry leaves at noon.", thread="t"))
    assert sentence in written.pending
    note = await passages.enrich(REN, first.passage.id, "It was a bittern.")
    assert note.id
    imported = await passages.insert_many(REN, [Draft(text="A tern.", import_key="tern")])
    assert sentence in imported.pending
    for query in ("ferry", "bittern", "tern"):
        found = await passages.search(REN, query)
        assert (found.mode, len(found.hits)) == ("keyword", 1), query
        assert sentence in found.reason
    with pytest.raises(EmbeddingFailed, match=sentence):
        await passages.vectors.refill()
    state = await passages.vectors.state()
    assert (state.chunks, state.missing, state.stored_widths) == (4, 3, (8,))

    service.answer = None
    assert await passages.vectors.refill() == 3
    assert (await passages.search(REN, "ferry")).mode == "hybrid"
    assert (await passages.vectors.state()).stale == 0


class SlowService:
    """A service on a port of its own, which takes its time and can be told to stop."""

    def __init__(self, width):
        self.service = EmbeddingService(width=width)
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self.pauses_after = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer._answer(self)

            def log_message(self, *_arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def _answer(self, handler):
        body = handler.rfile.read(int(handler.headers["content-length"]))
        if self.pauses_after is not None and len(self.service.asked) > self.pauses_after:
            self.asked.set()
            self.go_on.wait(60)
        answer = self.service.handle(httpx.Request("POST", self.url, content=body))
        with contextlib.suppress(OSError):  # who asked was killed
            handler.send_response(answer.status_code)
            handler.end_headers()
            handler.wfile.write(answer.content)

    def close(self):
        self.go_on.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def slow():
    service = SlowService(16)
    yield service
    service.close()


async def test_a_switch_that_is_killed_goes_on_and_search_answers_all_the_while(
    db, database_url, tmp_path, cache, slow
):
    await fetch_weights(cache, lambda _word: None)
    service = EmbeddingService()
    passages = Passages(db, service.open_vectors(db))
    await passages.insert_many(REN, [Draft(text=f"heron {n}") for n in range(1_200)])
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HAN_SOLO_HOME": str(tmp_path / "home"),
        "HAN_SOLO_CACHE": str(cache),
        "HAN_SOLO_DATABASE_URL": database_url,
        "HAN_SOLO_EMBED_URL": slow.url,
    }
    arguments = ("switch", "openai", "--model", "wide", "--width", "16", "--json")

    def start():
        return asyncio.create_subprocess_exec(
            sys.executable, "-m", "han_solo", "embed", *arguments,
            env=environment, cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    slow.pauses_after = 700
    process = await start()
    assert await asyncio.to_thread(slow.asked.wait, 60), "it never came to the middle"
    for query in ("heron 7", "heron 700"):
        found = await passages.search(REN, query)
        assert found.mode == "hybrid"
        assert query in {hit.text for hit in found.hits}
    await passages.insert(REN, Draft(text="a tern meanwhile"))
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    slow.pauses_after = None
    slow.go_on.set()

    assert (await passages.vectors.state()).name == SERVICE
    assert (await passages.search(REN, "tern")).mode == "hybrid"
    made = {model.name.model: model.vectors for model in await passages.vectors.list_models()}
    assert 500 <= made["wide"] < 1_201

    process = await start()
    searching = asyncio.create_task(_search_until(process, passages))
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert await searching > 0
    assert json.loads(out)["filled"] == 1_201 - made["wide"]
    state = await Passages(db, slow.service.open_vectors(db)).vectors.state()
    assert (state.name.model, state.stale, state.stored_widths) == ("wide", 0, (16,))


async def _search_until(process, passages):
    """Search until it has ended; each must find something. Return how many there were."""
    count = 0
    while process.returncode is None:
        found = await passages.search(REN, "heron 7")
        assert found.hits
        count += 1
        await asyncio.sleep(0.05)
    return count
