"""Switching the embedder: without an outage, resumable, and checked before anything is written."""

import json
import subprocess
import sys

import numpy as np
import pytest

from han_solo.embed.model import EmbedderName
from han_solo.errors import EmbeddingFailed, UsageError
from han_solo.memory.embed_switch import switch_embedder
from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from han_solo.memory.vector_filling import FILL_ROWS
from han_solo.memory.vectors import Vectors

from .memory_fixtures import LOCAL, REN, BagOfWords
from .store_fixtures import StoppedClock, migrated
from .test_search import AT

OTHER = EmbedderName("openai", "mine", 64)


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


@pytest.fixture
def embedders():
    return {LOCAL: BagOfWords(LOCAL), OTHER: BagOfWords(OTHER)}


@pytest.fixture
def passages(db, embedders):
    return Passages(db, Vectors(db, LOCAL, embedders.__getitem__))


@pytest.fixture
def switch(db, passages, embedders):
    async def run(name):
        begun, told = [], []
        done = await switch_embedder(
            db,
            passages.vectors,
            embedders[name],
            clock=StoppedClock(AT),
            begin=begun.append,
            tell=told.append,
        )
        return done, begun, told

    return run


async def find(passages, query):
    found = await passages.search(REN, query)
    return found.mode, [hit.passage_id for hit in found.hits], found.hits[0].nearness


async def test_all_vectors_are_made_anew_and_search_goes_by_them(passages, switch, embedders):
    done = await passages.insert_many(REN, [Draft(text=f"heron {n}") for n in range(30)])
    before = await find(passages, "heron 7")
    switched, begun, told = await switch(OTHER)
    assert (switched.filled, begun, sum(told)) == (30, [30], 30)
    embedders[LOCAL].failure = AssertionError("the old one is not asked any more")
    mode, ids, nearness = await find(passages, "heron 7")
    assert (mode, ids[0]) == ("hybrid", before[1][0]) == ("hybrid", done.passage_ids[7])
    assert nearness > 0.3
    state = await passages.vectors.state()
    assert (state.name, state.stale, state.stored_widths) == (OTHER, 0, (64,))
    embedders[LOCAL].failure = None
    switched, begun, _ = await switch(LOCAL)  # back: they are all still there
    assert (switched.filled, begun) == (0, [0])
    assert {(m.name, m.state) for m in await passages.vectors.list_models()} == {
        (LOCAL, "active"),
        (OTHER, "retired"),
    }


async def test_one_cut_short_goes_on_and_search_goes_by_the_old_one(passages, switch, embedders):
    await passages.insert_many(REN, [Draft(text=f"heron {n}") for n in range(FILL_ROWS + 5)])
    other = embedders[OTHER]
    embed, calls = other.embed, []

    async def fail_later(texts, kind):
        calls.append(len(texts))
        if len(calls) == 3:
            raise EmbeddingFailed("The provider limits our rate.")
        return await embed(texts, kind)

    other.embed = fail_later
    with pytest.raises(EmbeddingFailed, match="limits our rate"):
        await switch(OTHER)
    assert (await passages.vectors.state()).name == LOCAL
    assert (await find(passages, "heron 7"))[0] == "hybrid"
    other.embed = embed
    switched, begun, _ = await switch(OTHER)
    assert (switched.filled, begun) == (5, [5])


async def test_what_is_written_meanwhile_is_not_left_out(passages, switch, embedders):
    await passages.insert_many(REN, [Draft(text=f"heron {n}") for n in range(3)])
    other = embedders[OTHER]
    embed, written = other.embed, []

    async def write_meanwhile(texts, kind):
        if len(texts) == 3:
            written.append(await passages.insert(REN, Draft(text="a late heron", thread="t")))
        return await embed(texts, kind)

    other.embed = write_meanwhile
    switched, _, _ = await switch(OTHER)
    assert len(written) == 1
    assert switched.filled == 4
    assert (await passages.vectors.state()).stale == 0


async def test_a_model_of_another_width_is_refused_before_anything_is_written(
    passages, switch, embedders
):
    await passages.insert(REN, Draft(text="heron"))
    embedders[OTHER].failure = EmbeddingFailed("mine returned vectors of 3 numbers, and 64 are")
    with pytest.raises(EmbeddingFailed, match="of 3 numbers"):
        await switch(OTHER)
    assert [model.name for model in await passages.vectors.list_models()] == [LOCAL]


async def test_only_one_switches_at_a_time(passages, switch, db):
    await passages.insert(REN, Draft(text="heron"))
    async with db.direct() as connection:
        await connection.fetchval(
            "SELECT pg_try_advisory_lock(hashtextextended('memory.embedders', 0))"
        )
        with pytest.raises(UsageError, match="Another process is switching"):
            await switch(OTHER)


async def test_a_writer_that_did_not_hear_of_it_leaves_the_vector_to_be_made(
    passages, switch, db, embedders
):
    await passages.insert(REN, Draft(text="heron one"))
    slow = Passages(db, Vectors(db, LOCAL, embedders.__getitem__))
    await slow.insert(REN, Draft(text="heron two"))  # knows the old one for some seconds
    await switch(OTHER)
    await slow.insert(REN, Draft(text="heron three"))
    assert (await passages.vectors.state()).missing == 1
    assert await passages.vectors.refill() == 1
    assert (await passages.vectors.state()).stale == 0


@pytest.fixture
def embed_command(database_url, tmp_path, cache):
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "HAN_SOLO_HOME": str(tmp_path / "home"),
        "HAN_SOLO_CACHE": str(cache),
        "HAN_SOLO_DATABASE_URL": database_url,
    }

    def run(*arguments, **settings):
        return subprocess.run(
            [sys.executable, "-m", "han_solo", "embed", *arguments],
            env={**environment, **settings},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


async def test_the_command_tells_how_it_stands_and_makes_what_is_missing(
    embed_command, passages, embedders, cache
):
    embedders[LOCAL].failure = EmbeddingFailed("away")
    await passages.insert(REN, Draft(text="heron"))
    done = embed_command("status", "--json")
    assert done.returncode == 3, done.stderr
    found = json.loads(done.stdout)
    assert found["active"] == {"provider": "local", "model": "potion-base-8M", "width": 256}
    assert (found["chunks"], found["missing"]) == (1, 1)
    done = embed_command("status")
    assert "1 of 1 chunks lack its vector" in done.stdout
    assert embed_command("fetch").returncode == 0
    done = embed_command("fill")
    assert done.returncode == 0, done.stderr
    assert "1 made" in done.stderr
    assert embed_command("status").returncode == 0


async def test_the_command_says_what_a_switch_needs(embed_command, passages):
    await passages.insert(REN, Draft(text="heron"))
    done = embed_command("switch", "voyage")
    assert done.returncode == 2
    assert "VOYAGE_API_KEY" in done.stderr
    done = embed_command("switch", "openai", HAN_SOLO_EMBED_URL="http://127.0.0.1:9/v1")
    assert done.returncode == 2
    done = embed_command("switch", "local", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["was_active"] is True


async def test_a_model_whose_vectors_have_no_length_is_refused(passages, switch, embedders):
    await passages.insert(REN, Draft(text="heron"))

    async def embed_nothing(texts, _kind):
        return np.zeros((len(texts), OTHER.width), dtype=np.float32)

    embedders[OTHER].embed = embed_nothing
    with pytest.raises(EmbeddingFailed, match="without length"):
        await switch(OTHER)
    assert [model.name for model in await passages.vectors.list_models()] == [LOCAL]
