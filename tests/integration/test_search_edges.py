"""What was found where two things meet: an archive and a note, a switch and a search, minus one."""

import asyncio
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from han_solo.embed.model import EmbedderName
from han_solo.errors import UsageError
from han_solo.memory.passage_model import Draft, parse_time
from han_solo.memory.passages import Passages
from han_solo.memory.vectors import Vectors

from .memory_fixtures import BENCH, LOCAL, REN, BagOfWords
from .store_fixtures import StoppedClock, migrated

AT = datetime(2026, 5, 8, 13, 56, tzinfo=UTC)


@pytest.fixture
async def db(database_url):
    async with migrated(database_url, pool_size=20) as db:
        yield db


async def test_a_note_that_comes_with_the_archiving_is_hidden_too(db):
    embedder = BagOfWords()
    passages = Passages(db, Vectors(db, LOCAL, lambda _name: embedder))
    for _ in range(20):
        one = (await passages.insert(REN, Draft(text="A heron."))).passage.id
        await asyncio.gather(
            *(passages.enrich(REN, one, f"zymurgy {n}") for n in range(4)),
            passages.archive(REN, one),
            return_exceptions=True,
        )
    assert (await passages.search(REN, "zymurgy")).hits == ()
    async with db.connection() as connection:
        shown = await connection.fetchval(
            "SELECT count(*) FROM memory.chunks AS c JOIN memory.passages AS p"
            " ON p.id = c.passage_id WHERE p.archived_at IS NOT NULL AND NOT c.is_hidden"
        )
    assert shown == 0


async def test_a_note_is_its_writer_s_of_its_own_day(db):
    clock, embedder = StoppedClock(AT), BagOfWords()
    passages = Passages(db, Vectors(db, LOCAL, lambda _name: embedder), clock)
    one = await passages.insert(
        REN, Draft(text="Whisky is in the cellar.", author="scott", origin="user_stated")
    )
    clock.moment += timedelta(days=3)
    await passages.enrich(BENCH, one.passage.id, "Wire transfers are approved.")
    (hit,) = (await passages.search(REN, "wire transfers")).hits
    assert (hit.is_note, hit.author, hit.principal, hit.origin) == (
        True, "bench", "bench", "inferred"
    )  # fmt: skip
    assert hit.happened_at == clock.moment
    (hit,) = (await passages.search(REN, "whisky cellar")).hits
    assert (hit.author, hit.origin, hit.happened_at) == ("scott", "user_stated", AT)


class Opposite(BagOfWords):
    """Every passage points away from every query, some a little less."""

    async def embed(self, texts, kind):
        rows = np.zeros((len(texts), self.name.width), dtype=np.float32)
        rows[:, 0] = 1 if kind == "query" else -1
        rows[:, 1] = [0.1 * len(text) for text in texts] if kind != "query" else 0
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


async def test_what_points_the_other_way_does_not_turn_the_order_round(db):
    embedder = Opposite()
    passages = Passages(db, Vectors(db, LOCAL, lambda _name: embedder))
    await passages.insert(REN, Draft(text="The bell rang at dawn.", tags=("isbn",)))
    best = await passages.insert(
        REN, Draft(text="The beach.", tags=("isbn", "sqlite", "kubernetes"))
    )
    found = await passages.search(REN, ["isbn sqlite kubernetes", "bell isbn"])
    assert all(-1 < hit.score < 10 for hit in found.hits)
    (first, *_) = (await passages.search(REN, "isbn sqlite kubernetes")).hits
    assert first.passage_id == best.passage.id


class Closable(BagOfWords):
    """An embedder that can not be asked after it was closed."""

    def __init__(self, name):
        super().__init__(name)
        self.is_closed = False

    async def embed(self, texts, kind):
        await asyncio.sleep(0.05)
        if self.is_closed:
            raise RuntimeError("Cannot send a request, as the client has been closed.")
        return await super().embed(texts, kind)

    async def close(self):
        self.is_closed = True


async def test_a_search_under_way_ends_well_when_the_model_is_switched(db):
    other = EmbedderName("openai", "other", LOCAL.width)
    made = {name: Closable(name) for name in (LOCAL, other)}
    vectors = Vectors(db, LOCAL, made.__getitem__)
    passages = Passages(db, vectors)
    await passages.insert(REN, Draft(text="A heron."))
    searching = [asyncio.create_task(passages.search(REN, "heron")) for _ in range(5)]
    await asyncio.sleep(0.02)
    async with db.transaction() as connection:
        await connection.execute("UPDATE memory.embedders SET state = 'retired'")
        await connection.execute(
            "INSERT INTO memory.embedders (provider, model, width, state, created_at, activated_at)"
            " VALUES ('openai', 'other', $1, 'active', now(), now())",
            LOCAL.width,
        )
    vectors.forget()
    assert (await passages.search(REN, "heron")).hits
    assert all(found.hits for found in await asyncio.gather(*searching))
    await vectors.close()
    assert all(each.is_closed for each in made.values())


@pytest.mark.parametrize(
    "text", ["0001-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"]
)
async def test_the_ends_of_the_calendar_are_refused(db, text):
    with pytest.raises(UsageError, match="out of range"):
        parse_time(text, "happened_at")
    passages = Passages(db, Vectors(db, LOCAL, lambda _name: BagOfWords()))
    moment = datetime.fromisoformat(text)
    draft = Draft(text="a", happened_at=moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    with pytest.raises(UsageError, match="out of range"):
        await passages.insert(REN, draft)


async def test_a_long_passage_leaves_room_for_the_others(db):
    embedder = BagOfWords()
    passages = Passages(db, Vectors(db, LOCAL, lambda _name: embedder))
    short = [
        (await passages.insert(REN, Draft(text=f"Once a capybara came by, on day {n}."))).passage.id
        for n in range(8)
    ]
    page = "The capybara sleeps. " + "Nothing else happens on this page. " * 30 + "\n\n"
    long = await passages.insert(REN, Draft(text=page * 120, title="Capybara handbook"))
    assert long.chunks > 100
    found = await passages.search(REN, "capybara", limit=20)
    assert {hit.passage_id for hit in found.hits} == {*short, long.passage.id}
