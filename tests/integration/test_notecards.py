"""Notecards in a real Postgres: kept to the character, moved as asked, never lost."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from han_solo.errors import NotFound, UsageError
from han_solo.memory.notecard_model import MAX_LIMIT
from han_solo.memory.notecards import Notecards
from han_solo.principals import MEMORY_READ, MEMORY_WRITE, Principal

from .store_fixtures import StoppedClock, migrated

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
REN = Principal("ren", "agent", frozenset({MEMORY_READ, MEMORY_WRITE}), agent_id="agent-1")
CLAUDE = Principal("claude-code", "client", frozenset({MEMORY_READ, MEMORY_WRITE}))


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


@pytest.fixture
def clock():
    return StoppedClock(NOW)


@pytest.fixture
def notecards(db, clock):
    return Notecards(db, clock)


async def add(notecards, text="call back", **options):
    return await notecards.create(REN, text=text, creator="scott", **options)


async def count(db):
    async with db.connection() as connection:
        return await connection.fetchval("SELECT count(*) FROM memory.notecards")


async def test_a_notecard_says_who_it_is_from_and_who_wrote_it(notecards):
    card = await notecards.create(REN, text="call back", creator=" scott ", source="manual")
    assert (card.text, card.creator, card.source) == ("call back", "scott", "manual")
    assert (card.principal, card.agent_id) == ("ren", "agent-1")
    assert (card.status, card.created_at) == ("active", NOW)
    assert await notecards.get(card.id) == card


async def test_a_client_writes_for_no_agent(notecards):
    card = await notecards.create(CLAUDE, text="x", creator="ted")
    assert (card.principal, card.agent_id) == ("claude-code", None)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 4_000,
        "\U0001f600" * 4_000,
        "  kept  \r\n\ttabs\n\n",
        "\ufeffmark e\u0301 \u202e reversed \u200b",
        "'; DROP TABLE memory.notecards; -- :name $1 %s {x} \\",
        "\x01\x1b[31m\x7f control",
        "\uffff\U0010ffff",
    ],
)
async def test_text_is_kept_to_the_character(notecards, text):
    card = await add(notecards, text)
    assert (await notecards.get(card.id)).text == text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"text": ""}, "text is empty"),
        ({"text": " \n\t"}, "text is empty"),
        ({"text": "x" * 4_001}, "text has 4,001 characters; at most 4,000"),
        ({"text": "a\0b"}, r"text has a NUL character \(U\+0000\) at position 2"),
        ({"text": "a\ud83d"}, r"text has a lone surrogate \(U\+D83D\) at position 2"),
        ({"creator": " "}, "creator is empty"),
        ({"creator": "x" * 65}, "creator has 65 characters; at most 64"),
        ({"creator": "a\0"}, "creator has a NUL"),
        ({"creator": "\udc00"}, "creator has a lone surrogate"),
        ({"creator": "scott\nsystem"}, "creator has a line break or a control character"),
        ({"source": "email"}, "no source 'email'"),
    ],
)
async def test_bad_input_is_refused_by_name_and_nothing_is_written(notecards, db, changes, words):
    fields = {"text": "call back", "creator": "scott", "source": "chat"} | changes
    with pytest.raises(UsageError, match=words) as caught:
        await notecards.create(REN, **fields)
    assert caught.value.hint
    assert await count(db) == 0


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("complete", "completed"),
        ("archive", "archived"),
        ("complete archive", "archived"),
        ("complete reopen", "active"),
        ("archive reopen", "active"),
        ("archive reopen complete", "completed"),
    ],
)
async def test_a_notecard_moves_as_asked(notecards, path, status):
    card = await add(notecards)
    for step in path.split():
        change = await getattr(notecards, step)(CLAUDE, card.id)
        assert change.changed
    assert (await notecards.get(card.id)).status == status


@pytest.mark.parametrize(
    ("first", "again"),
    [("reopen", "reopen"), ("complete", "complete"), ("archive", "archive")],
)
async def test_moving_twice_changes_nothing_the_second_time(notecards, clock, first, again):
    card = await add(notecards)
    before = (await getattr(notecards, first)(REN, card.id)).notecard
    clock.moment += timedelta(minutes=1)
    change = await getattr(notecards, again)(CLAUDE, card.id)
    assert not change.changed
    assert change.notecard == before


async def test_a_move_notes_who_made_it_and_when(notecards, clock):
    card = await add(notecards)
    clock.moment += timedelta(minutes=1)
    moved = (await notecards.complete(CLAUDE, card.id)).notecard
    assert (moved.status_changed_by, moved.status_changed_at) == ("claude-code", clock.moment)
    assert (moved.principal, moved.created_at, moved.text) == ("ren", NOW, card.text)


async def test_an_archived_notecard_is_not_completed_behind_ones_back(notecards):
    card = await add(notecards)
    await notecards.archive(REN, card.id)
    with pytest.raises(UsageError, match="is archived and can not become completed") as caught:
        await notecards.complete(REN, card.id)
    assert "Reopen it first" in caught.value.hint
    assert (await notecards.get(card.id)).status == "archived"


@pytest.mark.parametrize("notecard_id", [0, -1, 999, 2**63, 10**30])
async def test_an_unknown_id_says_where_to_look(notecards, notecard_id):
    for call in (
        notecards.get(notecard_id),
        notecards.complete(REN, notecard_id),
        notecards.archive(REN, notecard_id),
        notecards.reopen(REN, notecard_id),
    ):
        with pytest.raises(NotFound, match=f"no notecard {notecard_id};") as caught:
            await call
        assert "list_notecards" in caught.value.hint


async def test_archived_notecards_are_hidden_from_the_default_view_only(notecards):
    active, completed, archived = [await add(notecards, text) for text in "abc"]
    await notecards.complete(REN, completed.id)
    await notecards.archive(REN, archived.id)
    shown = {
        status: [card.id for card in (await notecards.list(status=status)).notecards]
        for status in ("not_archived", "active", "completed", "archived", "all")
    }
    assert shown == {
        "not_archived": [completed.id, active.id],
        "active": [active.id],
        "completed": [completed.id],
        "archived": [archived.id],
        "all": [archived.id, completed.id, active.id],
    }


async def test_pages_hold_every_notecard_once_while_new_ones_come(notecards):
    ids = [(await add(notecards, f"note {n}")).id for n in range(25)]
    seen, cursor = [], None
    while True:
        page = await notecards.list(limit=7, cursor=cursor)
        seen += [card.id for card in page.notecards]
        cursor = page.next_cursor
        if cursor is None:
            break
        await add(notecards, "a newcomer")
    assert seen == ids[::-1]


async def test_a_full_last_page_has_no_cursor(notecards):
    for n in range(4):
        await add(notecards, f"note {n}")
    page = await notecards.list(limit=4)
    assert (len(page.notecards), page.next_cursor) == (4, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limit": 0}, "limit 0 is out of range"),
        ({"limit": MAX_LIMIT + 1}, "limit 101 is out of range"),
        ({"status": "open"}, "no status 'open'"),
        ({"cursor": ""}, "not a cursor"),
        ({"cursor": "before-0"}, "not a cursor"),
        ({"cursor": "before-9999999999999999999"}, "not a cursor"),
        ({"cursor": "before-1; DROP TABLE"}, "not a cursor"),
        ({"cursor": "\0\ud800"}, "not a cursor"),
    ],
)
async def test_a_list_that_can_not_be_is_refused_with_what_can(notecards, options, words):
    with pytest.raises(UsageError, match=words) as caught:
        await notecards.list(**options)
    assert caught.value.hint


async def test_fifty_writers_at_once_lose_nothing(notecards, db):
    async def write(writer):
        return [
            await notecards.create(REN, text=f"{writer}/{n}", creator="scott") for n in range(10)
        ]

    written = [card for cards in await asyncio.gather(*map(write, range(50))) for card in cards]
    assert len({card.id for card in written}) == 500
    async with db.connection() as connection:
        rows = await connection.fetch("SELECT id, text FROM memory.notecards")
    assert {(row["id"], row["text"]) for row in rows} == {(card.id, card.text) for card in written}


async def test_of_many_that_complete_one_notecard_at_once_one_did_it(notecards):
    card = await add(notecards)
    changes = await asyncio.gather(*(notecards.complete(REN, card.id) for _ in range(20)))
    assert sum(change.changed for change in changes) == 1
    assert {change.notecard.status for change in changes} == {"completed"}


@pytest.mark.parametrize(
    "column",
    [
        "text = ''",
        "text = E' \\r\\n\\t'",
        "text = repeat('x', 4001)",
        "creator = ''",
        "creator = E'a\\nb'",
        "creator = repeat('x', 65)",
        "status = 'open'",
        "source = 'email'",
        "principal = ''",
        "agent_id = ''",
        "status_changed_by = ''",
    ],
)
async def test_the_database_refuses_what_the_service_would(notecards, db, column):
    await add(notecards)
    with pytest.raises(asyncpg.CheckViolationError):
        async with db.connection() as connection:
            await connection.execute(f"UPDATE memory.notecards SET {column}")


async def test_moves_at_the_same_time_are_never_refused_for_a_reason_that_is_not_so(notecards):
    card = await notecards.create(REN, text="moved about", creator="ren")
    limit = asyncio.Semaphore(50)

    async def move(number):
        async with limit:
            act = (notecards.archive, notecards.reopen, notecards.complete)[number % 3]
            try:
                return await act(REN, card.id)
            except UsageError as error:
                return error.message

    moves = await asyncio.gather(*(move(number) for number in range(120)))
    refused = {move for move in moves if isinstance(move, str)}
    assert refused <= {f"Notecard {card.id} is archived and can not become completed."}
    assert sum(isinstance(move, str) for move in moves) < 40
    assert (await notecards.get(card.id)).status in {"active", "completed", "archived"}
