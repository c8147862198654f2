"""The index of vectors is made in the memory it needs, and alone where none can be shared."""

import asyncpg
import pytest

from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from han_solo.memory.statements import VECTORS, load_indexes
from han_solo.memory.vector_indexing import build_index
from han_solo.memory.vectors import Vectors

from .memory_fixtures import LOCAL, REN, BagOfWords
from .store_fixtures import migrated, superuser


class Cramped:
    """The real statements, but for a first build that finds no memory to share."""

    def __init__(self, indexes, failures):
        self._indexes = indexes
        self.failures = failures
        self.builds = []

    def __getattr__(self, name):
        return getattr(self._indexes, name)

    async def make_index_beside(self, connection):
        self.builds.append(await connection.fetchval("SHOW max_parallel_maintenance_workers"))
        if len(self.builds) <= self.failures:
            raise asyncpg.DiskFullError("could not resize shared memory segment")
        return await self._indexes.make_index_beside(connection)


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        embedder = BagOfWords()
        passages = Passages(db, Vectors(db, LOCAL, lambda _name: embedder))
        await passages.insert_many(REN, [Draft(text=f"heron {n}") for n in range(50)])
        yield db


@pytest.mark.parametrize(("failures", "workers"), [(0, ["2"]), (1, ["2", "0"])])
async def test_without_shared_memory_it_is_built_alone(db, failures, workers):
    indexes = Cramped(load_indexes(1, LOCAL.width), failures)
    async with db.direct() as connection:
        await build_index(connection, indexes, LOCAL.width)
        assert await VECTORS.has_index(connection, embedder_id=1)
        assert await connection.fetchval("SHOW maintenance_work_mem") == "64MB"
    assert indexes.builds == workers


async def test_a_disk_that_is_full_is_told(db):
    indexes = Cramped(load_indexes(1, LOCAL.width), 2)
    with pytest.raises(Exception, match="could not resize"):
        async with db.direct() as connection:
            await build_index(connection, indexes, LOCAL.width)


async def test_an_index_that_was_cut_short_is_made_anew(db, database_url, postgres_server):
    async with superuser(postgres_server, database_url) as connection:
        await connection.execute(
            "UPDATE pg_index SET indisvalid = false"
            " WHERE indexrelid = 'memory.vectors_nearest_1'::regclass"
        )
    async with db.direct() as connection:
        assert not await VECTORS.has_index(connection, embedder_id=1)
        await build_index(connection, load_indexes(1, LOCAL.width), LOCAL.width)
        assert await VECTORS.has_index(connection, embedder_id=1)
