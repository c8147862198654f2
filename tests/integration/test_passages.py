"""Passages: written once, added to, linked, hidden and shown again, and never lost."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from han_solo.errors import EmbeddingFailed, NotFound, UsageError
from han_solo.memory.passage_model import MAX_TEXT_CHARS, Draft
from han_solo.memory.passage_text import CHUNK_CHARS
from han_solo.memory.passages import Passages
from han_solo.memory.search_model import Filters
from han_solo.memory.vectors import Vectors

from .memory_fixtures import LOCAL, REN, BagOfWords
from .store_fixtures import StoppedClock, migrated

AT = datetime(2026, 5, 8, 13, 56, tzinfo=UTC)


@pytest.fixture
async def db(database_url):
    async with migrated(database_url, pool_size=20) as db:
        yield db


@pytest.fixture
def embedder():
    return BagOfWords()


@pytest.fixture
def passages(db, embedder):
    clock = StoppedClock(AT)
    return Passages(db, Vectors(db, LOCAL, lambda _name: embedder, clock), clock)


async def write(passages, text, **parts):
    return (await passages.insert(REN, Draft(text=text, **parts))).passage.id


async def find(passages, query, **options):
    return [hit.passage_id for hit in (await passages.search(REN, query, **options)).hits]


async def fetchval(db, sql, *arguments):
    async with db.connection() as connection:
        return await connection.fetchval(sql, *arguments)


async def test_a_passage_is_returned_as_it_is_stored(passages):
    draft = Draft(
        text="Scott's boat is called Argo.\n",
        title="The boat",
        author="Scott",
        origin="user_stated",
        source="chat",
        scope="family",
        tags=("boat", "a, b"),
        importance=0.9,
        happened_at=AT - timedelta(days=400),
    )
    written = await passages.insert(REN, draft)
    whole = await passages.get(REN, written.passage.id)
    assert whole.passage == written.passage
    for name in ("text", "title", "author", "origin", "source", "scope", "tags", "happened_at"):
        assert getattr(whole.passage, name) == getattr(draft, name)
    assert whole.passage.importance == pytest.approx(0.9)
    assert "argo" in whole.passage.entities
    assert (whole.passage.principal, whole.passage.agent_id) == ("ren", "agent-1")
    assert (whole.passage.created_at, whole.passage.archived_at) == (AT, None)
    assert (written.chunks, written.pending) == (1, None)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"text": ""}, "text is empty"),
        ({"text": " \n"}, "text is empty"),
        ({"text": "a\0b"}, "NUL character"),
        ({"text": "a\ud800b"}, "lone surrogate"),
        ({"text": "x" * (MAX_TEXT_CHARS + 1)}, "at most 2,000,000"),
        ({"text": "a", "scope": ""}, "scope is empty"),
        ({"text": "a", "origin": "guessed"}, "no origin 'guessed'"),
        ({"text": "a", "importance": 2.0}, "out of range"),
        ({"text": "a", "tags": ("x",) * 51}, "51 tags"),
        ({"text": "a", "happened_at": AT.replace(tzinfo=None)}, "has no zone"),
    ],
)
async def test_what_can_not_be_kept_is_refused_and_nothing_is_written(
    passages, db, parts, sentence
):
    with pytest.raises(UsageError, match=sentence):
        await passages.insert(REN, Draft(**parts))
    assert await fetchval(db, "SELECT count(*) FROM memory.passages") == 0


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f600\U0001f468‍\U0001f469‍\U0001f467",
        "שלום עולם",
        "'; DROP TABLE memory.passages; --",
        "a & b | !c <-> (d:*) \\ ' \" $1 %s {}",
        "?",
        "the of and",
    ],
)
async def test_any_text_is_kept_to_the_character_and_found_by_itself(passages, text):
    passage_id = await write(passages, text)
    assert (await passages.get(REN, passage_id)).passage.text == text
    assert await find(passages, text) == [passage_id]


async def test_a_megabyte_is_found_by_the_chunk_that_has_it(passages):
    filler = "Nothing happens on this page of the book. " * 12_000
    text = f"{filler}The treasure lies under the old lighthouse. {filler}"
    assert len(text) > 1_000_000
    written = await passages.insert(REN, Draft(text=text))
    (hit,) = (await passages.search(REN, "treasure lighthouse")).hits
    assert "treasure lies under the old lighthouse" in hit.text
    assert len(hit.text) <= CHUNK_CHARS
    assert 1 < hit.chunk < hit.chunks == written.chunks
    assert text[: len(filler)].count(hit.text) == 0


async def test_a_note_is_dated_kept_beside_the_text_and_found(passages):
    passage_id = await write(passages, "The pump was replaced.")
    note = await passages.enrich(REN, passage_id, "It leaked again in winter.")
    whole = await passages.get(REN, passage_id)
    assert whole.passage.text == "The pump was replaced."
    assert whole.notes == (note,)
    assert note.created_at == AT
    (hit,) = (await passages.search(REN, "leaked")).hits
    assert (hit.passage_id, hit.is_note, hit.text) == (passage_id, True, note.text)


async def test_archived_is_hidden_until_restored(passages):
    passage_id = await write(passages, "The old address is Elm Street.")
    assert (await passages.archive(REN, passage_id)).changed
    assert not (await passages.archive(REN, passage_id)).changed
    assert await find(passages, "address") == []
    assert await find(passages, "address", filters=Filters(include_archived=True)) == [passage_id]
    with pytest.raises(UsageError, match="is archived"):
        await passages.promote(passage_id)
    with pytest.raises(UsageError, match="is archived"):
        await passages.enrich(REN, passage_id, "more")
    assert (await passages.restore(passage_id)).changed
    assert not (await passages.restore(passage_id)).changed
    assert await find(passages, "address") == [passage_id]


async def test_foundational_is_for_ever(passages, db):
    passage_id = await write(passages, "Scott is the operator.")
    assert (await passages.promote(passage_id)).changed
    assert not (await passages.promote(passage_id)).changed
    with pytest.raises(UsageError, match="stays in view"):
        await passages.archive(REN, passage_id)
    await write(passages, "Something else.")
    async with db.connection() as connection:
        for statement in (
            "DELETE FROM memory.passages",
            "TRUNCATE memory.passages CASCADE",
            "UPDATE memory.passages SET tier = 'standard'",
            "UPDATE memory.passages SET text = 'changed'",
            "UPDATE memory.passages SET archived_at = now(), archived_by = 'x'",
        ):
            with pytest.raises(asyncpg.IntegrityConstraintViolationError):
                await connection.execute(statement)
        await connection.execute("DELETE FROM memory.passages WHERE tier = 'standard'")
    whole = await passages.get(REN, passage_id)
    assert (whole.passage.text, whole.passage.tier) == ("Scott is the operator.", "foundational")
    assert await find(passages, "operator") == [passage_id]


async def test_links_are_seen_from_both_sides_and_can_be_taken_away(passages):
    first, second = await write(passages, "We chose Postgres."), await write(passages, "Why: HNSW.")
    assert await passages.link(REN, first, second, kind="supports", note="the reason")
    assert not await passages.link(REN, first, second, kind="supports")
    (seen,) = (await passages.get(REN, second)).links
    assert (seen.passage_id, seen.kind, seen.note) == (first, "supports", "the reason")
    assert (seen.from_id, seen.to_id, seen.beginning) == (first, second, "We chose Postgres.")
    assert await passages.unlink(second, first) == 1
    assert (await passages.get(REN, first)).links == ()
    assert await passages.unlink(first, second) == 0


async def test_links_that_make_no_sense_are_refused(passages):
    passage_id = await write(passages, "One.")
    with pytest.raises(UsageError, match="with itself"):
        await passages.link(REN, passage_id, passage_id, kind="related")
    with pytest.raises(NotFound, match="no passage 999"):
        await passages.link(REN, passage_id, 999, kind="related")
    with pytest.raises(NotFound, match="no passage -1"):
        await passages.unlink(passage_id, -1)
    with pytest.raises(UsageError, match="no kind of link"):
        await passages.link(REN, passage_id, 999, kind="Not a word")


@pytest.mark.parametrize("passage_id", [0, -1, 999, 2**63, 2**80])
async def test_an_unknown_id_is_told(passages, passage_id):
    for call in (
        passages.get(REN, passage_id),
        passages.promote(passage_id),
        passages.archive(REN, passage_id),
        passages.restore(passage_id),
        passages.enrich(REN, passage_id, "more"),
    ):
        with pytest.raises(NotFound, match=f"no passage {passage_id}"):
            await call


async def test_an_import_is_done_once(passages):
    drafts = [Draft(text=f"Fact {n}", import_key=f"old-{n}", thread="t") for n in range(5)]
    first = await passages.insert_many(REN, drafts[:3])
    second = await passages.insert_many(REN, drafts)
    assert (len(first.passage_ids), first.skipped) == (3, 0)
    assert (len(second.passage_ids), second.skipped) == (2, 3)
    with pytest.raises(UsageError, match="import key 'old-1' already"):
        await passages.insert(REN, drafts[1])


async def test_how_often_it_was_found_and_read_is_counted(passages):
    passage_id = await write(passages, "A heron stood in the pond.")
    assert (await passages.get(REN, passage_id)).access_count == 0
    await find(passages, "heron")
    await find(passages, "nothing of the sort zzz")
    whole = await passages.get(REN, passage_id)
    assert (whole.access_count, whole.accessed_at) == (2, AT)


async def test_without_a_vector_it_is_written_found_by_words_and_embedded_later(passages, embedder):
    embedder.failure = EmbeddingFailed("The provider limits our rate.", hint="Later.")
    written = await passages.insert(REN, Draft(text="The ferry leaves at noon.", thread="t"))
    assert written.pending == "The provider limits our rate. Later."
    found = await passages.search(REN, "ferry")
    assert (found.mode, found.reason) == ("keyword", "The provider limits our rate. Later.")
    assert [hit.passage_id for hit in found.hits] == [written.passage.id]
    state = await passages.vectors.state()
    assert (state.chunks, state.missing, state.stale) == (1, 1, 1)
    embedder.failure = None
    assert await passages.vectors.refill() == 1
    assert (await passages.vectors.state()).stale == 0
    found = await passages.search(REN, "ferry")
    assert (found.mode, found.reason) == ("hybrid", "")
    assert found.hits[0].nearness > 0.1


async def test_fifty_writers_and_searchers_at_once_lose_nothing(passages, db):
    await write(passages, "The first word about herons.")

    async def write_one(number):
        return await write(passages, f"Heron number {number}.", thread=f"t{number % 3}")

    async def search_one(number):
        return (await passages.search(REN, f"heron {number}")).search_id

    done = await asyncio.gather(
        *[call(number) for number in range(50) for call in (write_one, search_one)]
    )
    assert len(set(done[::2])) == len(set(done[1::2])) == 50
    assert await fetchval(db, "SELECT count(*) FROM memory.passages") == 51
    assert await fetchval(db, "SELECT count(*) FROM memory.searches") == 50
    state = await passages.vectors.state()
    assert (state.chunks, state.stale) == (51, 0)
    # Each knows its neighbours, though they were written at the same time.
    wrong = """
        SELECT count(*)
        FROM memory.chunks AS c JOIN memory.contexts AS x ON x.chunk_id = c.id
        WHERE x.words <> (
            SELECT memory.join_words(n.words ORDER BY n.id)
            FROM (
                SELECT m.id, m.words,
                    row_number() OVER (ORDER BY m.id) AS place,
                    row_number() OVER (ORDER BY m.id)
                    - count(*) FILTER (WHERE m.id <= c.id) OVER () AS away
                FROM memory.chunks AS m WHERE m.thread = c.thread
            ) AS n
            WHERE n.away BETWEEN -2 AND 2
        )
    """
    assert await fetchval(db, "SELECT count(*) FROM memory.contexts") == 50
    assert await fetchval(db, wrong) == 0
