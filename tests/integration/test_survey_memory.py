"""What ``status`` says of the memory, on the real Postgres."""

import pytest

from han_solo.cli.survey_memory import look_at_memory
from han_solo.cli.survey_model import Survey
from han_solo.connections import Connections
from han_solo.errors import EmbeddingFailed
from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from han_solo.memory.vectors import Vectors
from han_solo.settings import Settings

from .memory_fixtures import LOCAL, REN, BagOfWords
from .store_fixtures import migrated


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


async def look(db, tmp_path, **settings):
    found = Survey()
    connections = Connections(Settings(_env_file=None, home=tmp_path, **settings))
    await look_at_memory(connections, found, db)
    (part,) = found.parts
    return part


async def test_it_says_how_what_is_remembered_is_found(db, tmp_path):
    part = await look(db, tmp_path)
    assert (part.level, part.detail) == ("ok", "nothing is remembered yet")

    embedder = BagOfWords()
    passages = Passages(db, Vectors(db, LOCAL, lambda _name: embedder))
    await passages.insert(REN, Draft(text="A heron."))
    part = await look(db, tmp_path)
    assert (part.level, part.address) == ("ok", str(LOCAL))
    assert part.detail == "1 chunk of passages, found by words and by meaning"

    embedder.failure = EmbeddingFailed("voyage did not answer within 20 s.")
    await passages.insert(REN, Draft(text="A tern."))
    part = await look(db, tmp_path)
    assert part.level == "warning"
    assert part.detail == "1 of 2 chunks of passages are found by their words alone"
    assert "han-solo embed fill" in part.fix


async def test_a_model_whose_key_is_gone_is_named(db, tmp_path):
    voyage = {"embedder": "voyage", "voyage_api_key": "key"}
    passages = Passages(db, Vectors(db, LOCAL, lambda _name: BagOfWords()))
    await passages.insert(REN, Draft(text="A heron."))
    part = await look(db, tmp_path, **voyage)
    assert part.level == "ok", "the memory has a model already, whatever the settings begin with"

    async with db.transaction() as connection:
        await connection.execute(
            "UPDATE memory.embedders SET provider = 'voyage', model = 'voyage-3', width = 1024"
        )
    part = await look(db, tmp_path)
    assert part.level == "warning"
    assert part.detail.startswith("passages are searched by their words alone: ")
    assert "VOYAGE_API_KEY" in part.detail + part.fix


async def test_without_the_database_it_is_unknown(tmp_path):
    assert (await look(None, tmp_path)).level == "unknown"
