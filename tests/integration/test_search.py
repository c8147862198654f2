"""Search: what it finds and why, what it says when it can not, and that it is always logged."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from han_solo.errors import EmbeddingFailed, UsageError
from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from han_solo.memory.search_model import Filters
from han_solo.memory.vectors import Vectors

from .memory_fixtures import LOCAL, REN, BagOfWords
from .store_fixtures import migrated

AT = datetime(2026, 5, 8, 13, 56, tzinfo=UTC)


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


@pytest.fixture
def embedder():
    return BagOfWords()


@pytest.fixture
def passages(db, embedder):
    return Passages(db, Vectors(db, LOCAL, lambda _name: embedder))


async def write(passages, *texts, **parts):
    done = await passages.insert_many(REN, [Draft(text=text, **parts) for text in texts])
    return list(done.passage_ids)


async def find(passages, query, **filters):
    found = await passages.search(REN, query, filters=Filters(**filters))
    return [hit.passage_id for hit in found.hits]


async def fetch(db, sql):
    async with db.connection() as connection:
        return [dict(row) for row in await connection.fetch(sql)]


async def test_words_are_joined_by_or_and_the_rare_one_leads(passages):
    common = await write(passages, *[f"The meeting number {n} was long." for n in range(30)])
    (rare,) = await write(passages, "The heron was long at the pond.")
    found = await find(passages, "Was the meeting about the heron?")
    assert found[0] == rare
    assert set(found[1:]) <= set(common)


async def test_the_text_around_it_finds_what_does_not_repeat_the_words(passages):
    await write(passages, *[f"On day {n} it rained." for n in range(20)])
    ids = await write(
        passages,
        "Anything on the menu today?",
        "Shall we talk about the wedding cake?",
        "Yes: three layers, lemon and almond.",
        "And the band plays at nine.",
        thread="planning",
    )
    found = await find(passages, "wedding cake")
    assert found[:2] == [ids[1], ids[2]] or found[:2] == [ids[2], ids[1]]


async def test_who_is_named_is_preferred(passages):
    anna, bob = (
        await write(passages, "I like tea.", author="Anna"),
        await write(passages, "I like tea.", author="Bob"),
    )
    assert await find(passages, "What does Anna like?") == [*anna, *bob]
    assert await find(passages, "What does Bob like?") == [*bob, *anna]


async def test_what_tells_a_time_is_preferred_when_one_is_asked_for(passages):
    untimed, timed = await write(passages, "The bridge was opened.", "The bridge opened in 1932.")
    assert (await find(passages, "When was the bridge opened?"))[0] == timed
    assert (await find(passages, "Who opened the bridge? It was opened."))[0] == untimed


async def test_every_hit_says_why_it_is_there(passages):
    await write(passages, "Anna sails a boat.", author="Anna", happened_at=AT)
    (hit,) = (await passages.search(REN, "Does Anna sail?")).hits
    assert "sail" in hit.matched
    assert hit.why().startswith("has ")
    assert "is by Anna" in hit.why()
    assert "near in meaning" in hit.why()


async def test_a_date_is_found_as_people_write_it(passages):
    ids = await write(passages, "We went sailing.", happened_at=AT)
    ids += await write(passages, "We went sailing.", happened_at=AT - timedelta(days=90))
    assert (await find(passages, "sailing in May 2026"))[0] == ids[0]
    assert (await find(passages, "sailing in February 2026"))[0] == ids[1]


async def test_several_queries_are_fused_and_each_hit_names_those_that_found_it(passages):
    heron, boat, both = await write(
        passages, "A heron at the pond.", "A boat on the lake.", "A heron beside the boat."
    )
    found = await passages.search(REN, ["heron", "boat", "zebra"])
    assert {hit.passage_id: set(hit.found_by) for hit in found.hits} == {
        heron: {1},
        boat: {2},
        both: {1, 2},
    }
    assert found.queries == ("heron", "boat", "zebra")


async def test_filters_narrow_and_never_starve(passages):
    await write(passages, *["A heron at the pond."] * 300)
    wanted = await write(
        passages,
        "The heron of the family.",
        scope="family",
        tags=("bird", "pond"),
        author="Anna",
        origin="user_stated",
        thread="t",
        happened_at=AT,
    )
    for filters in (
        {"scopes": ("family",)},
        {"tags": ("pond",)},
        {"tags": ("pond", "bird")},
        {"authors": ("anna",)},
        {"origins": ("user_stated",)},
        {"thread": "t"},
        {"happened_from": AT, "happened_to": AT + timedelta(seconds=1)},
        {"scopes": ("family",), "tags": ("bird",), "authors": ("ANNA",)},
    ):
        assert await find(passages, "heron", **filters) == wanted, filters
        # By meaning alone too, where no word is shared.
        assert await find(passages, "of the", **filters) == wanted, filters
    assert await find(passages, "heron", scopes=("nowhere",)) == []
    assert await find(passages, "heron", tags=("bird", "none")) == []
    assert await find(passages, "heron", tier="foundational") == []


class OneNearer(BagOfWords):
    """Two kinds of texts; those of the second are nearer to any query than all of the first."""

    async def embed(self, texts, kind):
        rows = np.zeros((len(texts), self.name.width), dtype=np.float32)
        rows[:, 0] = 1
        rows[:, 1] = [1.0 if text.endswith("far") else 0.1 for text in texts]
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


async def test_a_filter_too_wide_to_look_at_each_does_not_starve_either(db):
    embedder = OneNearer()
    passages = Passages(db, Vectors(db, LOCAL, lambda _name: embedder))
    await passages.insert_many(
        REN,
        [Draft(text=f"{n} far", scope="far") for n in range(3_500)]
        + [Draft(text=f"{n} near", scope="near") for n in range(3_500)],
    )
    near = await passages.search(REN, "zebra", limit=40)
    assert {hit.scope for hit in near.hits} == {"near"}
    far = await passages.search(REN, "zebra", filters=Filters(scopes=("far",)), limit=40)
    assert (len(far.hits), {hit.scope for hit in far.hits}) == (40, {"far"})


async def test_who_is_named_in_a_text_can_be_filtered_by(passages):
    first, _ = await write(passages, "We met Anna Berg in Oslo.", "We met nobody at all.")
    assert await find(passages, "met", entities=("Anna Berg", "Nobody Else")) == [first]


async def test_a_long_passage_is_one_hit(passages):
    text = "The heron stands in the reeds. " * 200
    (passage_id,) = await write(passages, text)
    assert await find(passages, "heron reeds") == [passage_id]


@pytest.mark.parametrize(
    "query",
    [
        "the of and to",
        "?!...",
        "'",
        "\\",
        "'; DROP TABLE memory.passages; --",
        "a & b | !c <-> (d:*)",
        "' | 'heron':*A \\ $1 %s {} :query",
        "\U0001f600",
        "שלום עולם",
        "*" * 10_000,
        "heron " * 1_666,
        " ".join(f"word{n}" for n in range(1_100)),
        "x" * 10_000,
        "https://example.com/a'b?c=d&e=f#g",
        "a\nb\tc",
    ],
)
async def test_any_query_has_an_answer(passages, query):
    await write(passages, "A heron at the pond.")
    found = await passages.search(REN, query)
    assert found.mode == "hybrid" or found.reason
    assert all(hit.score == hit.score for hit in found.hits)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("x" * 10_001, "at most 10,000"),
        ("a\0b", "NUL"),
        ("\ud800", "lone surrogate"),
        ([], "0 queries"),
        (["a"] * 9, "9 queries"),
    ],
)
async def test_what_is_no_query_is_refused(passages, db, query, sentence):
    with pytest.raises(UsageError, match=sentence):
        await passages.search(REN, query)
    assert await fetch(db, "SELECT id FROM memory.searches") == []


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        ({"tier": "bronze"}, "no tier 'bronze'"),
        ({"origins": ("guessed",)}, "no origin 'guessed'"),
        ({"tags": ("a\0",)}, "NUL"),
        ({"happened_from": AT.replace(tzinfo=None)}, "has no zone"),
        ({"happened_from": AT, "happened_to": AT}, "an end that is later"),
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused(passages, filters, sentence):
    with pytest.raises(UsageError, match=sentence):
        await find(passages, "heron", **filters)


async def test_each_search_is_logged_also_one_that_finds_nothing(passages, db):
    ids = await write(passages, "A heron at the pond.")
    found = await passages.search(REN, ["heron", "pond"], filters=Filters(scopes=("general",)))
    nothing = await passages.search(REN, "zebra")
    assert nothing.hits == ()
    first, second = await fetch(db, "SELECT * FROM memory.searches ORDER BY id")
    assert first["id"] == found.search_id
    assert first["queries"] == ["heron", "pond"]
    assert (first["principal"], first["agent_id"]) == ("ren", "agent-1")
    assert first["filters"] == {"scopes": ["general"]}
    assert (first["mode"], first["passage_ids"]) == ("hybrid", ids)
    assert (second["queries"], second["passage_ids"]) == (["zebra"], [])


async def test_without_vectors_it_goes_by_words_and_says_why(passages, embedder, db):
    ids = await write(passages, "A heron at the pond.", "Nothing else.")
    embedder.failure = EmbeddingFailed("voyage did not answer within 20 s.")
    found = await passages.search(REN, "heron")
    assert (found.mode, found.reason) == ("keyword", "voyage did not answer within 20 s.")
    assert [hit.passage_id for hit in found.hits] == ids[:1]
    (row,) = await fetch(db, "SELECT mode, reason FROM memory.searches")
    assert row == {"mode": "keyword", "reason": "voyage did not answer within 20 s."}


@pytest.mark.parametrize(
    ("queries", "which"),
    [
        (["the of and"], "The query has only"),
        (["?!..."], "The query has only"),
        (["heron", "to the"], "Query 2 has only"),
        (["to the", "heron", "of"], "Each of the queries 1, 3 has only"),
        (["heron"], ""),
    ],
)
async def test_a_query_without_a_word_to_search_by_is_told(passages, embedder, queries, which):
    await write(passages, "A heron at the pond.")
    found = await passages.search(REN, queries)
    assert found.reason.startswith(which)
    assert bool(found.reason) == bool(which)
    if which:
        assert found.reason.endswith("by meaning alone.")
    embedder.failure = EmbeddingFailed("voyage did not answer within 20 s.")
    found = await passages.search(REN, queries)
    assert found.reason.startswith("voyage did not answer within 20 s.")
    assert ("nothing can be found by it" in found.reason) == bool(which)


async def test_an_empty_memory_finds_nothing(passages):
    assert await find(passages, "anything") == []
