"""Passages to files and from files, on the real Postgres: nothing lost, doubled, or half there."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from han_solo.embed.weights import fetch_weights
from han_solo.errors import EmbeddingFailed
from han_solo.memory import transfer_import
from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from han_solo.memory.transfer_export import export_lines
from han_solo.memory.transfer_import import bring_in, count_known
from han_solo.memory.transfer_read import Defaults, Files, check_files, find_sources
from han_solo.memory.vectors import Vectors

from .. import servers
from .memory_fixtures import BENCH, LOCAL, REN, BagOfWords, make_cli
from .store_fixtures import StoppedClock, migrated

AT = datetime(2026, 5, 8, 12, tzinfo=UTC)
ODD = (
    "\U0001f469\u200d\U0001f467",
    "שלום",
    'a "quote" \\ and\ttab\r\nline',
    "x" * 5_000,
    "\ufeffbom",
)


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


@pytest.fixture
async def other(postgres_server, template):
    async with (
        servers.copied_database(postgres_server, template) as url,
        migrated(url) as db,
    ):
        yield db


async def fetch(db, query):
    async with db.connection() as connection:
        return [dict(row) for row in await connection.fetch(query)]


def open_memory(db, embedder=None, clock=None):
    chosen = embedder or BagOfWords()
    return Passages(db, Vectors(db, LOCAL, lambda _name: chosen), clock)


async def fill(db):
    """Write one of everything that a passage can have."""
    clock = StoppedClock(AT)
    passages = open_memory(db, clock=clock)
    await passages.insert_many(
        BENCH,
        [
            Draft(text=f"Turn {n} of the heron.", thread="session", author="scott", title="Talk")
            for n in range(3)
        ],
    )
    for text in ODD:
        await passages.insert(
            REN,
            Draft(text=text, tags=('a"b', "c\\d"), scope="odd", importance=0.3, source="f.md",
                  origin="external", happened_at=AT - timedelta(days=9)),
        )  # fmt: skip
    await passages.promote(4)
    clock.moment += timedelta(hours=1)
    await passages.enrich(REN, 4, "A note on the zymurgy.")
    await passages.enrich(BENCH, 4, "Another note.")
    await passages.link(REN, 5, 1, kind="follows", note="as told")
    await passages.link(BENCH, 1, 5, kind="corrects")
    await passages.archive(REN, 6)


async def export(db, path):
    path.write_bytes(b"".join([line async for line in export_lines(db)]))
    return path


def files(*paths, **defaults):
    return Files(tuple(find_sources(paths)), Defaults(**defaults))


async def test_what_was_exported_is_the_same_in_another_memory(db, other, tmp_path):
    await fill(db)
    there = await export(db, tmp_path / "there.jsonl")
    assert check_files(files(there), REN, AT).faults == []
    passages = open_memory(other)

    brought = await bring_in(passages, BENCH, files(there), now=AT)

    assert (brought.new, brought.known, brought.links) == (8, 0, 2)
    assert (brought.lost_links, brought.pending) == (0, None)
    here = await export(other, tmp_path / "here.jsonl")
    assert here.read_bytes() == there.read_bytes()
    (hit,) = (await passages.search(REN, "zymurgy")).hits
    assert (hit.is_note, hit.tier) == (True, "foundational")
    assert (await passages.search(REN, '"quote" line')).hits == ()  # it is put away
    state = await passages.vectors.state()
    assert (state.stale, state.chunks) == (0, 14)
    context = "SELECT count(*) FROM memory.vectors WHERE context IS NOT NULL"
    assert await fetch(other, context) == await fetch(db, context)


async def test_importing_again_adds_nothing_in_either_memory(db, other, tmp_path):
    await fill(db)
    there = await export(db, tmp_path / "there.jsonl")
    for target in (db, other, other):
        passages = open_memory(target)
        known = await count_known(target, files(there))
        brought = await bring_in(passages, BENCH, files(there), now=AT)
        assert brought.known == known
        assert brought.new == 8 - known
    again = await export(other, tmp_path / "again.jsonl")
    assert again.read_bytes() == there.read_bytes()
    assert await bring_in(open_memory(db), BENCH, files(again), now=AT) == brought
    assert (await export(db, tmp_path / "last.jsonl")).read_bytes() == there.read_bytes()


async def test_an_import_that_was_cut_short_goes_on_where_it_stopped(
    db, other, tmp_path, monkeypatch
):
    monkeypatch.setattr(transfer_import, "BATCH", 3)
    await fill(db)
    there = await export(db, tmp_path / "there.jsonl")

    def stop(_what, _count):
        stop.calls += 1
        if stop.calls == 2:
            raise RuntimeError("stopped")

    stop.calls = 0
    with pytest.raises(ExceptionGroup):
        await bring_in(open_memory(other), BENCH, files(there), now=AT, tell=stop)
    kept = await fetch(other, "SELECT count(*) AS passages FROM memory.passages")
    assert kept == [{"passages": 6}]
    brought = await bring_in(open_memory(other), BENCH, files(there), now=AT)
    assert (brought.new, brought.known) == (2, 6)
    here = await export(other, tmp_path / "here.jsonl")
    assert here.read_bytes() == there.read_bytes()
    assert (await open_memory(other).vectors.state()).stale == 0


async def test_without_a_provider_it_is_imported_and_found_by_words(db, other, tmp_path):
    await fill(db)
    there = await export(db, tmp_path / "there.jsonl")
    embedder = BagOfWords()
    embedder.failure = EmbeddingFailed("voyage asks to wait.")
    passages = open_memory(other, embedder)
    brought = await bring_in(passages, BENCH, files(there), now=AT)
    assert (brought.new, brought.pending) == (8, "voyage asks to wait.")
    assert (await passages.search(REN, "zymurgy")).hits[0].is_note


async def test_links_to_what_is_nowhere_are_counted_and_left_out(db, tmp_path):
    path = tmp_path / "links.jsonl"
    path.write_text(
        '{"key":"a","text":"A","links":[{"to":"b"},{"to":"zz"}]}\n{"key":"b","text":"B"}'
    )
    brought = await bring_in(open_memory(db), BENCH, files(path), now=AT)
    assert (brought.new, brought.links, brought.lost_links) == (2, 1, 1)


async def test_a_line_without_a_key_or_a_writer_is_named_by_what_it_holds(db, tmp_path):
    path = tmp_path / "own.ndjson"
    path.write_bytes(b'\xef\xbb\xbf{"text":"A"}\r\n\r\n{"text":"A"}\n{"text":"B"}')
    for new in (2, 0):
        brought = await bring_in(open_memory(db), BENCH, files(path), now=AT)
        assert (brought.new, brought.known) == (new, 3 - new)
    rows = await fetch(db, "SELECT text, principal FROM memory.passages ORDER BY id")
    assert rows == [{"text": "A", "principal": "bench"}, {"text": "B", "principal": "bench"}]


async def test_prose_is_one_passage_a_file(db, tmp_path):
    notes = tmp_path / "notes"
    (notes / "deeper").mkdir(parents=True)
    (notes / "b.md").write_text("## The ferry ##\r\n\r\nIt leaves at noon.\r\n")
    (notes / "deeper" / "a.txt").write_bytes(b"\xef\xbb\xbfPlain words.\n")
    (notes / "picture.png").write_bytes(b"\x89PNG")
    given = files(notes, scope="trips", tags=("old",), author="scott", origin="user_stated")
    for new in (2, 0):
        assert (await bring_in(open_memory(db), BENCH, given, now=AT)).new == new
    rows = await fetch(
        db, "SELECT text, title, source, scope, tags, author FROM memory.passages ORDER BY id"
    )
    same = {"scope": "trips", "tags": ["old"], "author": "scott"}
    assert rows == [
        {"text": "## The ferry ##\n\nIt leaves at noon.", "title": "The ferry", "source": "b.md"}
        | same,
        {"text": "Plain words.", "title": "a", "source": "a.txt"} | same,
    ]


@pytest.fixture
async def memory(database_url, tmp_path, cache):
    await fetch_weights(cache, lambda _word: None)
    return make_cli(database_url, tmp_path, cache)


def test_what_can_not_be_imported_is_named_by_line_and_nothing_is_written(memory, tmp_path):
    lines = [
        b'{"text":"good"}',
        b'{"text":"a","importnce":1}',
        b'{"text":" "}',
        b"nope",
        b'{"text":"b","happened_at":"soon"}',
        b'{"key":"k","text":"c"}',
        b'{"key":"k","text":"d"}',
        b"\xff",
        b'{"text":3}',
        b'{"text":"a\\u0000b"}',
        b'{"text":"a","tier":"bronze"}',
        b'{"text":"a","tier":"foundational","archived_at":"2026-05-08"}',
        b'{"text":"a","notes":[{"text":""}]}',
        b'{"text":"a","links":[{"to":"k","kind":"See Also"}]}',
        b'{"key":"s","text":"a","links":[{"to":"s"}]}',
        b'["text"]',
    ]
    (tmp_path / "bad.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "latin.md").write_bytes(b"caf\xe9")
    (tmp_path / "empty.txt").write_bytes(b"")
    done = memory("import", "bad.jsonl", "latin.md", "empty.txt", "--yes")
    assert done.returncode == 2
    told = done.stderr.splitlines()
    assert told[0] == "error: 16 of 18 passages can not be imported."
    for place, words in {
        "bad.jsonl:2": "unknown field `importnce`",
        "bad.jsonl:3": "empty",
        "bad.jsonl:4": "no JSON object",
        "bad.jsonl:5": "'soon' is no time",
        "bad.jsonl:7": "that of bad.jsonl:6 too",
        "bad.jsonl:8": "no JSON object",
        "bad.jsonl:9": "Expected `str`",
        "bad.jsonl:10": "NUL",
        "bad.jsonl:11": "no tier 'bronze'",
        "bad.jsonl:12": "foundational and archived",
        "bad.jsonl:13": "note is empty",
        "bad.jsonl:14": "no kind of link",
        "bad.jsonl:15": "linked with itself",
        "bad.jsonl:16": "Expected `object`",
        "latin.md": "not UTF-8: byte 0xe9 at 3",
        "empty.txt": "empty",
    }.items():
        assert any(line.strip().startswith(f"{place}: ") and words in line for line in told), place
    assert "nothing was written" in told[-1]
    assert memory("export").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("import", "nowhere.jsonl"), "There is no file nowhere.jsonl."),
        (("import", "folder"), "There is no file to import in folder."),
        (("import", "a.docx"), "can not be told from its name"),
        (("import", "a.jsonl"), "Nobody can be asked here"),
        (("export", "a.jsonl"), "There is a file a.jsonl already."),
        (("export", "nowhere/a.jsonl"), "can not be written: No such file"),
    ],
)
def test_what_can_not_be_done_is_a_sentence(memory, tmp_path, arguments, sentence):
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.docx").touch()
    (tmp_path / "a.jsonl").write_text('{"text":"a"}')
    done = memory(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.startswith("error: ") or "1 passage in 1 file" in done.stdout
    assert "Traceback" not in done.stderr


def test_pipes_and_json_are_for_scripts(memory, tmp_path):
    lines = "".join(json.dumps({"text": f"Heron {n}."}) + "\n" for n in range(300))
    looked = memory("import", "-", "--dry-run", "--json", input=lines)
    assert json.loads(looked.stdout) == {
        "files": 1, "passages": 300, "notes": 0, "links": 0, "known": 0
    }  # fmt: skip
    done = memory("import", "-", "--yes", "--json", input=lines)
    assert json.loads(done.stdout)["new"] == 300, done.stderr
    assert memory("import", "-", input=lines).returncode == 0, "nothing new needs no consent"
    out = memory("export", "-")
    assert [json.loads(line)["text"] for line in out.stdout.splitlines()] == [
        f"Heron {n}." for n in range(300)
    ]
    assert memory("export", "kept.jsonl").returncode == 0
    assert (tmp_path / "kept.jsonl").read_text() == out.stdout
    assert (tmp_path / "kept.jsonl").stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.glob("*.part")) == []
    assert memory("export", "kept.jsonl", "--force", "--scope", "none").returncode == 0
    assert (tmp_path / "kept.jsonl").read_text() == ""
