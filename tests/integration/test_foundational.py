"""Foundational passages survive every path, whoever takes it: raw SQL, in bulk, triggers off."""

import asyncpg
import pytest

from han_solo.errors import UsageError
from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from han_solo.memory.transfer_import import bring_in
from han_solo.memory.transfer_read import Defaults, Files, check_files, find_sources
from han_solo.memory.vectors import Vectors

from .memory_fixtures import BENCH, LOCAL, REN, BagOfWords
from .store_fixtures import migrated, superuser

REFUSED = (asyncpg.IntegrityConstraintViolationError, asyncpg.GeneratedAlwaysError)
ATTACKS = {
    "delete": "DELETE FROM memory.passages WHERE id = 1",
    "delete of all": "DELETE FROM memory.passages",
    "delete by a join": "DELETE FROM memory.passages USING memory.chunks"
    " WHERE chunks.passage_id = passages.id",
    "merge": "MERGE INTO memory.passages AS p USING (SELECT 1 AS id) AS s ON p.id = s.id"
    " WHEN MATCHED THEN DELETE",
    "truncate": "TRUNCATE memory.passages CASCADE",
    "demotion": "UPDATE memory.passages SET tier = 'standard'",
    "another text": "UPDATE memory.passages SET text = 'changed'",
    "another id": "UPDATE memory.passages SET id = id + 100 WHERE id = 1",
    "hiding": "UPDATE memory.passages SET archived_at = now(), archived_by = 'x'",
    "demotion and hiding": "UPDATE memory.passages SET tier = 'standard', archived_at = now(),"
    " archived_by = 'x' WHERE id = 1",
    "upsert": "INSERT INTO memory.passages (id, text, origin, scope, happened_at, created_at,"
    " principal) OVERRIDING SYSTEM VALUE VALUES (1, 'changed', 'inferred', 'x', now(), now(), 'x')"
    " ON CONFLICT (id) DO UPDATE SET text = excluded.text",
}


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


@pytest.fixture
async def passages(db):
    embedder = BagOfWords()
    passages = Passages(db, Vectors(db, LOCAL, lambda _name: embedder))
    await passages.insert(REN, Draft(text="Scott is the operator.", tier="foundational"))
    await passages.insert(REN, Draft(text="The pump leaks."))
    return passages


@pytest.fixture(params=["owner", "owner as replica", "superuser", "superuser as replica"])
async def session(request, passages, database_url, postgres_server):
    """Yield a connection of someone with every right, who also tries to switch triggers off."""
    async with superuser(postgres_server, database_url) as connection:
        if request.param.endswith("replica"):
            await connection.execute("SET session_replication_role = replica")
        if request.param.startswith("owner"):
            await connection.execute("SET ROLE han_solo")
        yield connection


@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_statement_takes_one_away_or_changes_it(passages, session, attack):
    before = await passages.get(REN, 1)
    with pytest.raises(REFUSED):
        await session.execute(ATTACKS[attack])
    assert (await passages.get(REN, 1)).passage == before.passage
    (hit,) = (await passages.search(REN, "operator")).hits
    assert (hit.text, hit.tier) == ("Scott is the operator.", "foundational")


async def test_no_call_takes_one_away_or_changes_it(passages, tmp_path):
    before = (await passages.get(REN, 1)).passage
    with pytest.raises(UsageError, match="stays in view"):
        await passages.archive(REN, 1)
    await passages.enrich(REN, 1, "Since May.")
    await passages.link(REN, 1, 2, kind="related")
    await passages.unlink(1, 2)
    await passages.promote(1)
    assert not (await passages.restore(1)).changed

    path = tmp_path / "kept.jsonl"
    path.write_text(
        '{"key":"kept","text":"Ren is the agent.","tier":"foundational"}\n'
        '{"key":"plain","text":"A tern."}\n'
    )
    files = Files(tuple(find_sources([path])), Defaults())
    await bring_in(passages, BENCH, files, now=before.created_at)
    path.write_text(
        '{"key":"kept","text":"Changed.","archived_at":"2026-05-08"}\n'
        '{"key":"plain","text":"A tern.","tier":"foundational","archived_at":"2026-05-08"}\n'
    )
    assert "foundational and archived" in check_files(files, BENCH, before.created_at).faults[0]
    path.write_text('{"key":"kept","text":"Changed.","archived_at":"2026-05-08"}\n')
    await bring_in(passages, BENCH, files, now=before.created_at)
    await passages.insert_many(REN, [Draft(text="Changed.", import_key="kept")])

    assert (await passages.get(REN, 1)).passage == before
    (hit,) = (await passages.search(REN, "who is the agent")).hits[:1]
    assert (hit.text, hit.tier, hit.archived_at) == ("Ren is the agent.", "foundational", None)
