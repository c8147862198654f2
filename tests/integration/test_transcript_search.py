"""Search in many transcripts goes by its index; damage has one row for each place."""

import json

import pytest

from han_solo.store.queries import QUERIES
from han_solo.transcripts.ingest import sync
from tests.integration.store_fixtures import migrated
from tests.unit.transcript_lines import said

from .test_transcripts import dump, spoken


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as opened:
        yield opened


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "projects" / "-srv-demo"
    folder.mkdir(parents=True)
    return folder


async def run(db, project):
    return await sync(db, [project.parent], machine="here")


def search_sql():
    """Return the statement as it stands in its file, with numbers for its names."""
    text = (QUERIES / "transcripts.sql").read_text()
    body = text.split("-- name: search(")[1].split("-- name:")[0].split("\n", 2)[2]
    names = ("query", "since", "project", "session_id", "limit_rows")
    for number, name in enumerate(names, start=1):
        body = body.replace(f":{name}", f"${number}")
    return body.rstrip().rstrip(";")


async def test_search_finds_by_the_index_of_words(db, project):
    lines = [spoken(f"heron number {n}", n) for n in range(3_000)]
    (project / "s.jsonl").write_bytes(dump(*lines))
    await run(db, project)
    async with db.connection() as connection:
        await connection.execute("ANALYZE memory.transcripts")
        plan = await connection.fetchval(
            f"EXPLAIN (FORMAT JSON) {search_sql()}", "2718", None, None, None, 10
        )
        found = await connection.fetch(search_sql(), "2718", None, None, None, 10)
    assert "transcripts_search" in json.dumps(json.loads(plan))
    assert [row["snippet"] for row in found] == ["heron number **2718**"]


async def test_the_same_damage_at_two_places_is_two_rows_and_a_second_sync_adds_none(db, project):
    good = dump(spoken("good", 1))
    (project / "s.jsonl").write_bytes(b"nonsense\n" + good + b"nonsense\n[1]{\n")
    await run(db, project)
    kept = "SELECT file_offset, position, kind FROM memory.transcript_damage ORDER BY 1, 2"
    async with db.connection() as connection:
        first = [tuple(row) for row in await connection.fetch(kept)]
    later = len(b"nonsense\n" + good)
    assert [(at, place) for at, place, _ in first] == [
        (0, 0), (later, 0), (later + 9, 0), (later + 9, 1)
    ]  # fmt: skip
    with (project / "s.jsonl").open("ab") as file:
        file.write(dump(spoken("more", 2)))
    await run(db, project)
    async with db.connection() as connection:
        assert [tuple(row) for row in await connection.fetch(kept)] == first


async def test_an_old_side_agent_in_its_session_s_file_is_a_session_of_its_own(db, project):
    records = [said("user", "go", 1), said("user", "aside", 2, isSidechain=True)]
    (project / "s-1.jsonl").write_bytes(dump(*records))
    await run(db, project)
    async with db.connection() as connection:
        rows = await connection.fetch(
            "SELECT session_id, parent_id, agent_id FROM memory.transcript_sessions ORDER BY 1"
        )
    assert [tuple(row) for row in rows] == [("s-1", None, None), ("s-1/side", "s-1", "side")]


async def test_a_last_line_is_stored_once_whenever_its_end_comes(db, project):
    path = project / "s.jsonl"
    whole, last = dump(spoken("first", 1)), dump(spoken("last", 2))
    for cut in (len(last) - 5, len(last) - 1, len(last)):
        path.write_bytes(whole + last[:cut])
        await run(db, project)
    with path.open("ab") as file:
        file.write(dump(spoken("after", 3)))
    await run(db, project)
    async with db.connection() as connection:
        rows = await connection.fetch("SELECT text FROM memory.transcripts ORDER BY id")
        damage = await connection.fetchval("SELECT count(*) FROM memory.transcript_damage")
    assert ([row["text"] for row in rows], damage) == (["first", "last", "after"], 0)
