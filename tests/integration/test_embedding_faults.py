"""A provider that fails, and a switch that is killed: everything is written, and found by words."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import signal
import subprocess
import sys

import pytest

from han_solo.embed.local_models import POTION
from han_solo.embed.model import EmbedderName
from han_solo.embed.weights import fetch_weights
from han_solo.errors import EmbeddingFailed
from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from han_solo.memory.vectors import Vectors
from tests.integration.embedding_service import (
    SERVICE,
    EmbeddingServer,
    EmbeddingService,
    Fault,
)
from tests.integration.memory_fixtures import REN
from tests.integration.store_fixtures import migrated

VOYAGE = EmbedderName("voyage", "voyage-small", 8)
FAULTS = {
    "limited": (Fault(status=429), "limits our rate"),
    "limited for long": (Fault(status=429, headers={"retry-after": "3600"}), "limits our rate"),
    "limited until a date": (
        Fault(status=429, headers={"retry-after": "Fri, 08 May 2026 12:00:00 GMT"}),
        "limits our rate",
    ),
    "hangs": (Fault(hangs=True), "did not answer within 0.2 s"),
    "hangs up": (Fault(drops=True), "is not reached"),
    "key": (Fault(status=401), "does not accept the key (HTTP 401)"),
    "no such model": (Fault(status=400), "(HTTP 400)"),
    "broken": (Fault(status=500), "(HTTP 500)"),
    "no JSON": (Fault(body=b"<html>"), "something else than vectors"),
    "other JSON": (Fault(body=b'{"data": [{"index": 0}]}'), "something else than vectors"),
    "none": (Fault(vectors=lambda _all: []), "with 0 vectors"),
    "one too many": (Fault(vectors=lambda all_: [*all_, all_[0]]), "vectors"),
    "width": (
        Fault(vectors=lambda all_: [each[:2] for each in all_]),
        "returned vectors of 2 numbers, and 8 are expected",
    ),
    "no number": (
        Fault(vectors=lambda all_: [[math.nan, *each[1:]] for each in all_]),
        "a number in it that is none",
    ),
    "infinite": (
        Fault(vectors=lambda all_: [[math.inf, *each[1:]] for each in all_]),
        "a number in it that is none",
    ),
}


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


@pytest.mark.parametrize(
    ("name", "fault"),
    [(SERVICE, fault) for fault in FAULTS] + [(VOYAGE, "limited"), (VOYAGE, "width")],
    ids=str,
)
async def test_a_fault_costs_a_vector_and_nothing_else(db, server, fault, name):
    passages = Passages(db, Vectors(db, name, server.open))
    first = await passages.insert(REN, Draft(text="A heron at the pond."))
    server.service.fault, sentence = FAULTS[fault]

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
    with pytest.raises(EmbeddingFailed, match=re.escape(sentence)):
        await passages.vectors.refill()
    state = await passages.vectors.state()
    assert (state.chunks, state.missing, state.stored_widths) == (4, 3, (8,))

    server.service.fault = None
    assert await passages.vectors.refill() == 3
    assert (await passages.search(REN, "ferry")).mode == "hybrid"
    assert (await passages.vectors.state()).stale == 0


async def test_a_provider_that_is_gone_costs_a_vector_and_nothing_else(db):
    server = EmbeddingServer(EmbeddingService())
    passages = Passages(db, Vectors(db, SERVICE, server.open))
    await passages.insert(REN, Draft(text="A heron at the pond."))
    await asyncio.to_thread(server.close)
    written = await passages.insert(REN, Draft(text="The ferry leaves at noon."))
    assert "is not reached" in written.pending
    found = await passages.search(REN, "ferry")
    assert (found.mode, len(found.hits)) == ("keyword", 1)


async def test_fewer_vectors_than_texts_are_kept_for_none_of_them(db, server):
    passages = Passages(db, Vectors(db, SERVICE, server.open))
    server.service.fault = Fault(vectors=lambda all_: all_[:1])
    done = await passages.insert_many(REN, [Draft(text=f"tern {n}") for n in range(3)])
    assert "3 texts with 1 vectors" in done.pending
    assert (await passages.vectors.state()).missing == 3


@pytest.fixture
def server():
    server = EmbeddingServer(EmbeddingService())
    yield server
    server.close()


@pytest.mark.parametrize(
    "fault", ["limited for long", "hangs", "key", "width", "no JSON", "infinite"]
)
async def test_a_switch_to_a_provider_that_fails_says_why_and_changes_nothing(
    db, database_url, tmp_path, server, fault
):
    passages = Passages(db, EmbeddingService().open_vectors(db))
    await passages.insert(REN, Draft(text="A heron at the pond."))
    server.service.fault, sentence = FAULTS[fault]
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "han_solo", "embed", "switch", "openai", "--model", "x",
         "--width", "8"],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "HAN_SOLO_HOME": str(tmp_path / "home"),
            "HAN_SOLO_DATABASE_URL": database_url,
            "HAN_SOLO_EMBED_URL": server.url,
            "HAN_SOLO_EMBED_TIMEOUT_S": "0.2",
        },
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert done.stderr.startswith("error: ") or "\nerror: " in done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert [model.name for model in await passages.vectors.list_models()] == [SERVICE]


async def test_the_local_embedder_needs_no_network(tmp_path, cache):
    await fetch_weights(cache, lambda _word: None)
    code = f"""
import asyncio, pathlib, socket
def refuse(*_arguments, **_options):
    raise AssertionError("the network was asked")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from han_solo.embed.local import LocalEmbedder
made = LocalEmbedder(pathlib.Path({str(cache)!r}))
print(asyncio.run(made.embed(["a heron"], "query")).shape)
"""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
        check=False, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == f"(1, {POTION.width})\n", done.stderr


@pytest.fixture
def slow():
    server = EmbeddingServer(EmbeddingService(width=16))
    yield server
    server.close()


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
