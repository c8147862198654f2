"""Transcripts in the real Postgres: every record once, whatever happens to the files."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from han_solo.cli import main as cli
from han_solo.context import MemoryContext
from han_solo.daemon.jobs import run_job
from han_solo.errors import NotFound, UsageError
from han_solo.loader import load_registry
from han_solo.principals import Principal
from han_solo.runs.model import Finished
from han_solo.transcripts import ingest, pieces
from han_solo.transcripts.ingest import sync
from han_solo.transcripts.model import QUARANTINED
from han_solo.transcripts.service import Transcripts
from tests.integration.job_fixtures import open_jobs
from tests.integration.store_fixtures import migrated
from tests.unit.transcript_lines import DAMAGED, GOOD, SHAPES, join, said

CORPUS = [*GOOD, *DAMAGED.values()]
NOW = datetime.now(UTC)


def dump(*records: dict) -> bytes:
    return join(*[json.dumps(record).encode() for record in records])


def spoken(text: str, number: int = 1, **fields: object) -> dict:
    return said("user", text, number, **{"timestamp": NOW.isoformat(), **fields})


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as opened:
        yield opened


@pytest.fixture
def project(tmp_path) -> Path:
    folder = tmp_path / "projects" / "-srv-demo"
    folder.mkdir(parents=True)
    return folder


async def run(db, project, **options):
    return await sync(db, [project.parent], machine="here", **options)


async def texts(db) -> list[str]:
    async with db.connection() as connection:
        rows = await connection.fetch("SELECT text FROM memory.transcripts ORDER BY id")
    return [row["text"] for row in rows]


async def test_every_shape_and_every_damage_is_counted_and_nothing_is_lost(db, project):
    (project / "s-1.jsonl").write_bytes(join(*CORPUS))

    report = await run(db, project)

    assert report.damage == dict.fromkeys(DAMAGED, 1)
    assert set(report.kinds) >= set(SHAPES)
    async with db.connection() as connection:
        kept = await connection.fetch(
            "SELECT kind, raw, file_offset FROM memory.transcript_damage ORDER BY file_offset"
        )
    for row in kept:
        line = DAMAGED[row["kind"]]
        assert row["raw"] == (line if row["kind"] in QUARANTINED else b"")
        assert row["file_offset"] == join(*CORPUS).index(line)


async def test_a_second_sync_reads_nothing_and_a_longer_file_from_where_it_was(db, project):
    file = project / "s-1.jsonl"
    file.write_bytes(dump(spoken("one", 1), spoken("two", 2)))
    first = await run(db, project)
    idle = await run(db, project)
    with file.open("ab") as out:
        out.write(dump(spoken("three", 3))[:-5])
    torn = await run(db, project)
    with file.open("ab") as out:
        out.write(dump(spoken("three", 3))[-5:])
    last = await run(db, project)

    assert (first.new, idle.read, torn.new, last.new) == (2, 0, 0, 1)
    assert last.bytes == len(dump(spoken("three", 3)))
    assert await texts(db) == ["one", "two", "three"]


@pytest.mark.parametrize("how", ["shrunk", "replaced", "rewritten"])
async def test_a_file_that_is_another_one_is_read_again_and_nothing_is_doubled(db, project, how):
    file = project / "s-1.jsonl"
    file.write_bytes(dump(spoken("one", 1), spoken("two", 2)))
    await run(db, project)
    changed = {
        "shrunk": dump(spoken("one", 1)),
        "replaced": dump(spoken("one", 1), spoken("two", 2), spoken("new", 3)),
        "rewritten": dump(spoken("ONE", 1), spoken("two", 2), spoken("new", 3)),
    }[how]
    if how == "replaced":
        other = project / "other"
        other.write_bytes(changed)
        other.rename(file)
    else:
        file.write_bytes(changed)
    os.utime(file, ns=(1, 1))

    await run(db, project)

    wanted = {"shrunk": [], "replaced": ["new"], "rewritten": ["ONE", "new"]}[how]
    assert await texts(db) == ["one", "two", *wanted]


async def test_a_crash_between_two_pieces_loses_and_doubles_nothing(db, project, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 2_000)
    records = [spoken(f"word {number}", number) for number in range(40)]
    (project / "s-1.jsonl").write_bytes(dump(*records))
    stores = []
    store = ingest._Sync._store

    async def crash(self, *arguments):
        stores.append(1)
        if len(stores) == 3:
            raise RuntimeError
        await store(self, *arguments)

    monkeypatch.setattr(ingest._Sync, "_store", crash)
    with pytest.raises(RuntimeError):
        await run(db, project)
    half = len(await texts(db))
    await run(db, project)

    assert 0 < half < 40
    assert await texts(db) == [f"word {number}" for number in range(40)]


async def test_syncs_at_once_of_the_same_records_in_other_orders_store_each_once(
    db, project, tmp_path, monkeypatch
):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 4_000)
    records = [spoken(f"word {number}", number) for number in range(200)]
    folders = []
    for name, lines in {"a": records, "b": records[::-1]}.items():
        folder = tmp_path / name / "-srv-demo"
        folder.mkdir(parents=True)
        (folder / "s-1.jsonl").write_bytes(dump(*lines))
        (folder / "s-2.jsonl").write_bytes(dump(*lines[::-1]))
        folders.append(folder.parent)

    reports = await asyncio.gather(
        *[sync(db, [folder], machine=machine) for folder in folders for machine in ("one", "two")]
    )

    assert sum(report.new for report in reports) == 200
    assert len(set(await texts(db))) == len(await texts(db)) == 200


async def test_the_job_shows_what_it_counted(database_url, project, tmp_path):
    (project / "s-1.jsonl").write_bytes(join(*CORPUS))
    spec = next(job for job in load_registry().jobs if job.name == "transcripts")
    async with open_jobs(
        database_url, home=tmp_path / "home", transcripts=(project.parent,)
    ) as services:
        result = await run_job(services, spec, started_by="schedule")

    assert isinstance(result, Finished)
    assert result.run.outcome == "succeeded", result.run.error
    assert result.run.evidence["damage"] == dict.fromkeys(DAMAGED, 1)
    assert sum(result.run.evidence["kinds"].values()) == result.run.evidence["records"]


async def test_nothing_that_a_record_can_hold_fails_its_file(db, project):
    wide = "\U0001f600" * 5_000
    strange = said("assistant", wide * 20, 1)
    strange |= {"uuid": wide, "sessionId": wide, "agentId": wide, "cwd": wide, "parentUuid": wide}
    strange["timestamp"] = "0001-01-01T00:00:00+14:00"
    strange["message"] |= {"id": wide, "model": wide, "usage": {"output_tokens": 10**40}}
    nul = said("user", "a\0b", 2, sessionId="s\0", cwd="c\0", agentId="\0", subtype="\0")
    (project / "s-1.jsonl").write_bytes(dump(strange, nul, spoken("good", 3)))

    report = await run(db, project)

    assert report.new == 3
    assert (await texts(db))[-2:] == ["ab", "good"]


async def test_a_file_whose_name_is_no_text_is_named_and_costs_no_other(db, project):
    (project / "s-1.jsonl").write_bytes(dump(spoken("good")))
    Path(os.fsdecode(os.fsencode(project) + b"/a\xff.jsonl")).write_bytes(dump(spoken("lost")))

    report = await run(db, project)

    assert (report.unreadable, await texts(db)) == (1, ["good"])


async def test_a_search_in_a_project_finds_what_others_say_oftener(db, project):
    dear = project.parent / "-srv-dear"
    dear.mkdir()
    (project / "s-1.jsonl").write_bytes(
        dump(*[spoken(f"parser parser {number}", number) for number in range(600)])
    )
    (dear / "s-2.jsonl").write_bytes(
        dump(spoken("the parser", 700, sessionId="s-2", cwd="/srv/Dear_one"))
    )
    await run(db, project)

    hits = await Transcripts(db).search("parser", project="dear_ONE")

    assert [hit.session_id for hit in hits] == ["s-2"]


async def test_a_line_longer_than_a_piece_is_one_record(db, project, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1_000)
    (project / "s-1.jsonl").write_bytes(
        dump(spoken("a", 1), spoken("b" * 9_000, 2), spoken("c", 3))
    )

    await run(db, project)

    assert [len(text) for text in await texts(db)] == [1, 9_000, 1]


async def test_two_syncs_at_once_take_each_record_once(db, project):
    for number in range(6):
        lines = dump(*[spoken(f"{number}.{n}", n, sessionId=f"s-{number}") for n in range(30)])
        (project / f"s-{number}.jsonl").write_bytes(lines)

    await asyncio.gather(run(db, project), run(db, project))
    await run(db, project)

    found = await texts(db)
    assert len(found) == len(set(found)) == 180


async def test_a_history_copied_into_another_session_is_known_already(db, project):
    (project / "s-1.jsonl").write_bytes(dump(spoken("one", 1), spoken("two", 2)))
    copied = dump(
        *[spoken(text, n, sessionId="s-2") for n, text in ((1, "one"), (2, "two"), (3, "x"))]
    )
    (project / "s-2.jsonl").write_bytes(copied)

    report = await run(db, project)

    assert (report.records, report.new) == (5, 3)


async def test_side_agents_are_sessions_of_their_own_with_a_parent(db, project):
    (project / "s-1.jsonl").write_bytes(dump(spoken("go", 1)))
    (project / "agent-a1.jsonl").write_bytes(dump(spoken("old way", 2, isSidechain=True)))
    newer = project / "s-1" / "subagents"
    newer.mkdir(parents=True)
    (newer / "agent-a2.jsonl").write_bytes(dump(spoken("new way", 3, agentId="a2")))

    await run(db, project)

    async with db.connection() as connection:
        rows = await connection.fetch(
            "SELECT session_id, parent_id, agent_id FROM memory.transcript_sessions ORDER BY 1"
        )
    assert [tuple(row) for row in rows] == [
        ("s-1", None, None), ("s-1/a1", "s-1", "a1"), ("s-1/a2", "s-1", "a2")
    ]  # fmt: skip


async def test_usage_is_counted_once_a_message_and_titles_of_people_win(db, project):
    parts = [said("assistant", [{"type": "text", "text": str(n)}], n) for n in range(3)]
    for part in parts:
        part["message"]["id"] = "m-1"
    parts[2]["message"]["usage"] = {"input_tokens": 10, "output_tokens": 90}
    titles = [
        {"type": "custom-title", "customTitle": "By hand", "sessionId": "s-1"},
        {"type": "ai-title", "aiTitle": "By a model", "sessionId": "s-1"},
    ]
    (project / "s-1.jsonl").write_bytes(dump(*parts, *titles))
    await run(db, project)

    totals = await Transcripts(db).describe()
    assert (totals.input_tokens, totals.output_tokens) == (10, 90)
    assert (await Transcripts(db).find_session("s-1")).title == "By hand"


async def test_excluded_projects_are_not_read(db, project):
    private = project.parent / "-home-me-private-notes"
    private.mkdir()
    (private / "s-9.jsonl").write_bytes(dump(spoken("secret plans", 9)))
    (project / "s-1.jsonl").write_bytes(dump(spoken("open", 1)))

    await run(db, project, excluded=["/home/me/private*"])

    assert await texts(db) == ["open"]


async def test_search_looks_45_days_back_and_older_records_stay(db, project):
    old = (NOW - timedelta(days=60)).isoformat()
    (project / "s-1.jsonl").write_bytes(
        dump(
            spoken("the reconciler applies plans", 1),
            said("user", "an older word about the reconciler", 2, timestamp=old),
            said("user", [{"type": "tool_result", "content": "reconciler in a tool"}], 3),
        )
    )
    await run(db, project)
    transcripts = Transcripts(db)

    recent = await transcripts.search("reconciler")
    all_of_it = await transcripts.search("reconciler", days=None)

    assert len(recent) == 1
    assert "**reconciler** applies plans" in recent[0].snippet
    assert len(all_of_it) == 2
    assert await transcripts.search("reconciler", project="elsewhere") == ()
    assert len(await transcripts.search('"applies plans" -older')) == 1


@pytest.mark.parametrize("query", ["", "   ", "?!", "\x00", "x" * 1_001])
async def test_a_query_without_a_word_is_a_sentence(db, query):
    with pytest.raises(UsageError, match="The query has"):
        await Transcripts(db).search(query)


@pytest.mark.parametrize("query", ["a' OR 1=1 --", "a & | ! ( ) : *", "<-> x", "emoji 🎉", "שלום"])
async def test_no_query_is_too_strange(db, query):
    assert await Transcripts(db).search(query) == ()


async def test_the_tools_show_hits_and_read_what_stands_around_them(db, project):
    lines = [spoken(f"step {number} of the plan", number) for number in range(120)]
    (project / "s-1.jsonl").write_bytes(dump(*lines, spoken("x" * 9_000, 200)))
    await run(db, project)
    principal = Principal("ren", "agent", frozenset({"transcripts:read"}))
    context = MemoryContext(
        principal=principal, notecards=None, passages=None, transcripts=Transcripts(db)
    )
    registry = load_registry()
    search_tool, read_tool = registry.get("search_transcripts"), registry.get("read_transcript")

    found = await search_tool.function(context, "step 7")
    page = await read_tool.function(context, "s-1", limit=50)
    rest = await read_tool.function(context, "s-", after_id=page.next_after_id, limit=200)

    assert {search_tool.scope, read_tool.scope} == {"transcripts:read"}
    assert found.hits[0].session_id == "s-1"
    assert "not an instruction" in found.about
    assert len(page.records) == 50
    assert [len(page.records) + len(rest.records), rest.next_after_id] == [121, None]
    assert rest.records[-1].cut_chars == 5_000
    with pytest.raises(NotFound):
        await read_tool.function(context, "nowhere")


async def test_the_commands_say_what_there_is(database_url, project, monkeypatch, tmp_path):
    (project / "s-1.jsonl").write_bytes(join(*CORPUS) + dump(spoken("find me here", 77)))
    for name, value in {
        "HAN_SOLO_HOME": tmp_path / "home",
        "HAN_SOLO_DATABASE_URL": database_url,
        "HAN_SOLO_TRANSCRIPTS": project.parent,
        "HAN_SOLO_TIMEZONE": "UTC",
        "COLUMNS": "160",
    }.items():
        monkeypatch.setenv(name, str(value))

    async def type_(*words):
        command = ["transcripts", *words]
        return await asyncio.to_thread(CliRunner().invoke, cli.build_app(), command)

    synced = await type_("sync")
    status = await type_("status")
    hit = await type_("search", "find me")
    nothing = await type_("search", "nowhere")
    as_json = await type_("search", "find me", "--json")
    bad = await type_("search", "?")

    assert "1 files, 1 with something new" in synced.output
    assert "lines could not be taken" in synced.output
    assert "prompt" in status.output
    assert (hit.exit_code, nothing.exit_code, bad.exit_code) == (0, 1, 2)
    assert "/srv/demo" in hit.output
    assert "**find** **me** here" in hit.output
    assert json.loads(as_json.stdout)[0]["session_id"] == "s-1"


async def test_an_installation_may_point_at_real_samples(db):
    """``HAN_SOLO_TEST_TRANSCRIPTS`` may name a folder of transcripts to try."""
    folder = os.environ.get("HAN_SOLO_TEST_TRANSCRIPTS")
    if not folder:
        pytest.skip("HAN_SOLO_TEST_TRANSCRIPTS is not set")
    report = await sync(db, [Path(folder)], machine="samples")
    async with db.connection() as connection:
        stored = await connection.fetchval("SELECT count(*) FROM memory.transcripts")
    assert report.files > 0
    assert stored == report.new
