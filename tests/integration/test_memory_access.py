"""What searches show beside what they find, what they were good for, and what the MRI tells."""

from datetime import UTC, date, datetime, timedelta

import pytest

from han_solo.errors import NotFound, UsageError
from han_solo.memory.passage_links import LINKED_FOR_EACH, MAX_LINKED
from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from han_solo.memory.search_model import Filters
from han_solo.memory.vectors import Vectors

from .memory_fixtures import BENCH, LOCAL, REN, BagOfWords
from .store_fixtures import StoppedClock, migrated

AT = datetime(2026, 5, 8, 13, 56, tzinfo=UTC)


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


@pytest.fixture
def clock():
    return StoppedClock(AT)


@pytest.fixture
def passages(db, clock):
    embedder = BagOfWords()
    return Passages(db, Vectors(db, LOCAL, lambda _name: embedder, clock), clock)


async def write(passages, *texts, **parts):
    done = await passages.insert_many(REN, [Draft(text=text, **parts) for text in texts])
    return list(done.passage_ids)


async def fetch(db, sql, *arguments):
    async with db.connection() as connection:
        return [tuple(row) for row in await connection.fetch(sql, *arguments)]


async def test_what_a_hit_is_linked_with_is_shown_beside_the_hits_in_both_directions(passages, db):
    ferry, dog, prices = await write(
        passages, "The ferry to Hven.", "Argo is a dog.", "Tickets are 90 crowns."
    )
    await passages.link(REN, ferry, prices, kind="supports", note="what it costs")
    await passages.link(REN, dog, ferry, kind="related")

    found = await passages.search(REN, "ferry")

    assert [hit.passage_id for hit in found.hits] == [ferry]
    assert {(each.passage_id, each.via_id, each.is_to) for each in found.linked} == {
        (prices, ferry, True),
        (dog, ferry, False),
    }
    price = next(each for each in found.linked if each.passage_id == prices)
    assert (price.kind, price.link_note) == ("supports", "what it costs")
    assert price.beginning == "Tickets are 90 crowns."
    assert await fetch(db, "SELECT passage_ids, linked_ids FROM memory.searches") == [
        ([ferry], [each.passage_id for each in found.linked])
    ]


async def test_links_add_and_never_take_away(passages):
    texts = [f"Heron number {n}." for n in range(5)]
    herons = await write(passages, *texts)
    before = [(hit.passage_id, hit.score) for hit in (await passages.search(REN, "heron")).hits]
    (other,) = await write(passages, "Something else.")
    for heron in herons:
        await passages.link(REN, heron, other, kind="related")
        await passages.link(REN, heron, herons[0] if heron != herons[0] else other, kind="follows")

    found = await passages.search(REN, "heron")

    assert [(hit.passage_id, hit.score) for hit in found.hits] == before
    assert [each.passage_id for each in found.linked] == [other]  # once, and no hit among them


async def test_an_archived_passage_is_linked_to_only_when_archived_ones_are_asked_for(passages):
    ferry, old = await write(passages, "The ferry.", "An old timetable.")
    await passages.link(REN, ferry, old, kind="corrects")
    await passages.archive(REN, old)

    assert (await passages.search(REN, "ferry")).linked == ()
    found = await passages.search(REN, "ferry", filters=Filters(include_archived=True))
    assert [each.passage_id for each in found.linked] == [old]


async def test_one_passage_that_is_linked_with_everything_does_not_fill_the_reply(passages):
    hubs = await write(passages, *[f"Heron {n}." for n in range(6)])
    others = await write(passages, *[f"Thing {n}." for n in range(24)])
    for n, other in enumerate(others):
        await passages.link(REN, hubs[n % 6], other, kind="related")

    found = await passages.search(REN, "heron")

    assert len(found.linked) == MAX_LINKED
    assert found.more_linked == len(others) - MAX_LINKED
    counts = [sum(each.via_id == hub for each in found.linked) for hub in hubs]
    assert max(counts) == LINKED_FOR_EACH


async def test_what_a_search_was_good_for_is_kept_and_can_be_taken_back(passages, db):
    ids = await write(passages, "Heron one.", "Heron two.", "Heron three.")
    found = await passages.search(REN, "heron")

    verdict = await passages.log_access(REN, found.search_id, [ids[1]], note="the year is missing")
    assert (set(verdict.shown_ids), verdict.used_ids) == (set(ids), (ids[1],))
    await passages.log_access(BENCH, found.search_id, ids[:1])

    rows = await fetch(
        db, "SELECT passage_id, kind, principal FROM memory.passage_uses ORDER BY passage_id"
    )
    assert rows == [
        (ids[0], "used", "bench"), (ids[1], "not_used", "bench"), (ids[2], "not_used", "bench")
    ]  # fmt: skip


async def test_what_a_search_did_not_show_can_not_have_been_used(passages, db):
    heron, other = await write(passages, "Heron.", "Else.")
    found = await passages.search(REN, "heron")
    with pytest.raises(UsageError, match=f"did not show passage {other}") as refused:
        await passages.log_access(REN, found.search_id, [heron, other])
    assert refused.value.hint == f"It showed {heron}."
    for unknown in (found.search_id + 1, 0, -1, 2**70):
        with pytest.raises(NotFound, match="There is no search"):
            await passages.log_access(REN, unknown, [])
    with pytest.raises(UsageError, match="NUL"):
        await passages.log_access(REN, found.search_id, [heron], note="a\0b")
    assert await fetch(db, "SELECT count(*) FROM memory.passage_uses") == [(0,)]


async def test_a_search_that_found_nothing_can_be_judged_too(passages):
    await write(passages, "Heron.")
    found = await passages.search(REN, "zymurgy")
    assert found.hits == ()
    assert (await passages.log_access(REN, found.search_id, [])).shown_ids == ()


async def test_being_shown_by_a_link_or_read_counts_as_access(passages, clock):
    ferry, prices = await write(passages, "The ferry.", "Tickets.")
    await passages.link(REN, ferry, prices, kind="related")
    await passages.search(REN, "ferry")
    clock.moment += timedelta(hours=1)
    assert (await passages.get(REN, prices)).access_count == 1
    whole = await passages.get(REN, prices)
    assert (whole.access_count, whole.accessed_at) == (2, clock.moment)


async def test_the_mri_tells_dead_hot_and_blind_spots(passages, clock):
    heron, ferry, dog, read, linked, away = await write(
        passages, "Heron.", "Ferry.", "Dog.", "Read.", "Linked.", "Away.", scope="birds"
    )
    await write(passages, "Alone.", scope="other")
    await passages.promote(dog)
    await passages.archive(REN, away)
    await passages.link(REN, heron, linked, kind="related")
    clock.moment += timedelta(days=2)
    await passages.get(REN, read)
    for _ in range(4):
        found = await passages.search(REN, "heron")
    await passages.log_access(REN, found.search_id, [heron])
    for _ in range(2):
        found = await passages.search(REN, "ferry")
        await passages.log_access(REN, found.search_id, [])
    for query in ("zymurgy", "Zymurgy", "quince"):
        await passages.search(REN, query)

    told = await passages.mri(days=7)

    assert (told.passages, told.foundational, told.archived, told.new) == (6, 1, 1, 6)
    assert (told.searches, told.empty, told.judged, told.of_use) == (9, 3, 3, 1)
    assert {each.id for each in told.dead_passages} == {dog, told.dead_passages[1].id}
    assert (told.dead, told.dead_passages[0].beginning) == (2, "Dog.")
    assert [(each.id, each.not_used) for each in told.unhelpful_passages] == [(ferry, 2)]
    assert [(each.id, each.times, each.used) for each in told.hot_passages] == [
        (heron, 4, 1), (ferry, 2, 0)
    ]  # fmt: skip
    blind = [(each.question.lower(), each.times, each.found_nothing) for each in told.blind_spots]
    assert sorted(blind) == [("ferry", 2, False), ("quince", 1, True), ("zymurgy", 2, True)]
    assert told.blind == 3
    assert {each.first_times: each.passages for each in told.times_found} == {
        0: 4, 1: 0, 2: 1, 4: 1, 8: 0, 16: 0
    }  # fmt: skip
    assert [(each.scope, each.passages, each.dead) for each in told.scopes] == [
        ("birds", 5, 1), ("other", 1, 1)
    ]  # fmt: skip
    assert len(told.days) == 8
    assert [day for day in told.days if day.searches] == [
        type(told.days[0])(date(2026, 5, 10), 9, 3)
    ]


async def test_a_blind_spot_is_asked_in_a_place_and_ends_when_it_is_answered(passages, clock):
    await write(passages, "Heron.", scope="birds")
    fish = Filters(scopes=("fish", "seals"), happened_from=clock.moment)
    for query, filters in (("heron", fish), ("heron", None), ("tern", None), ("tern", fish)):
        await passages.search(REN, query, filters=filters)
    told = await passages.mri(days=7)
    asked = {(each.question, each.where()) for each in told.blind_spots}
    place = f"scopes fish, seals; happened from {clock.moment.isoformat()}"
    assert asked == {("heron", place), ("tern", ""), ("tern", place)}
    clock.moment += timedelta(hours=1)
    await write(passages, "Tern.")
    found = await passages.search(REN, "tern")
    assert {(each.question, each.where()) for each in (await passages.mri(days=7)).blind_spots} == {
        ("heron", place), ("tern", place)
    }  # fmt: skip
    await passages.log_access(REN, found.search_id, [])
    (again,) = [
        each
        for each in (await passages.mri(days=7)).blind_spots
        if (each.question, each.where()) == ("tern", "")
    ]
    assert (again.times, again.found_nothing) == (2, False)


async def test_the_mri_looks_only_as_far_back_as_it_is_asked_to(passages, clock):
    (heron,) = await write(passages, "Heron.")
    await passages.search(REN, "heron")
    clock.moment += timedelta(days=10)
    assert (await passages.mri(days=30)).dead == 0
    late = await passages.mri(days=5)
    assert (late.searches, late.dead, late.new) == (0, 1, 0)
    assert [each.id for each in late.dead_passages] == [heron]
    for days in (0, -1, 3_651):
        with pytest.raises(UsageError, match="out of range"):
            await passages.mri(days=days)


async def test_the_mri_of_an_empty_memory_is_no_error(passages):
    told = await passages.mri()
    assert (told.passages, told.searches, told.dead, told.blind) == (0, 0, 0, 0)
    assert told.hot_passages == told.scopes == ()


async def test_the_mri_counts_days_by_the_named_zone(passages, clock):
    clock.moment = datetime(2026, 5, 8, 23, 30, tzinfo=UTC)
    await write(passages, "Heron.")
    await passages.search(REN, "heron")
    told = await passages.mri(days=2, zone="Europe/Berlin")
    assert [each.day for each in told.days if each.searches] == [date(2026, 5, 9)]
