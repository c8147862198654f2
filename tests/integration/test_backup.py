"""Backups on the real Postgres: whole or not there, and restored to the last row."""

from __future__ import annotations

import asyncio
import json
import stat
from datetime import UTC, datetime

import asyncpg
import pytest
from typer.testing import CliRunner

from han_solo.backup.dump import BackupFailed
from han_solo.backup.export import DERIVED
from han_solo.backup.service import list_backups, make_backup, verify_backup
from han_solo.cli import main as cli
from han_solo.daemon.jobs import run_job
from han_solo.loader import load_registry
from han_solo.memory.notecards import Notecards
from han_solo.principals import Principal
from han_solo.runs.model import Finished
from tests.integration.job_fixtures import open_jobs
from tests.servers import fresh_database

SCOTT = Principal("scott", "operator", frozenset())
TEXT = "Ünïcode, 'quotes', \\backslashes\\\nand\ttabs."


@pytest.fixture
async def services(database_url, tmp_path):
    async with open_jobs(
        database_url,
        home=tmp_path / "home",
        letta_base_url="http://letta.test",
        backups_keep=2,
    ) as opened:
        await Notecards(opened.db).create(SCOTT, text=TEXT, creator="scott", source="manual")
        yield opened


async def test_the_job_makes_a_backup_that_restores_to_the_last_row(
    services, database_url, postgres_server, monkeypatch, tmp_path
):
    spec = next(job for job in load_registry().jobs if job.name == "backup")

    result = await run_job(services, spec, started_by="schedule")

    assert isinstance(result, Finished)
    assert result.run.outcome == "succeeded", result.run.error
    assert "letta" in result.run.evidence["not_included"]
    (backup,) = list_backups(services.settings)
    tables = await verify_backup(backup)
    assert {"memory.notecards", "memory.agent_core_block_versions"} <= set(tables)
    lines = (backup.path / "export" / "notecards.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == [TEXT]
    for path in [backup.path, *backup.path.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path

    monkeypatch.setenv("HAN_SOLO_HOME", str(tmp_path / "home"))
    async with fresh_database(postgres_server) as url:
        for code in (0, 2):  # a second time it is no longer empty
            done = await asyncio.to_thread(
                CliRunner().invoke, cli.build_app(), ["backups", "restore", "--into", url]
            )
            assert done.exit_code == code, done.output
        assert await _contents(url) == await _contents(database_url)


async def _contents(url):
    connection = await asyncpg.connect(url)
    try:
        names = await connection.fetch(
            "SELECT schemaname || '.' || tablename AS name FROM pg_tables"
            " WHERE schemaname IN ('han_solo', 'memory') AND tablename <> 'job_runs' ORDER BY 1"
        )
        return {
            row["name"]: await connection.fetch(
                f"SELECT t::text FROM {row['name']} AS t ORDER BY 1"
            )
            for row in names
        }
    finally:
        await connection.close()


async def test_only_the_last_ones_are_kept_and_an_unfinished_one_is_none(services):
    for day in (1, 2, 3):
        await make_backup(services.settings, services.db, datetime(2026, 12, day, tzinfo=UTC))
    root = list_backups(services.settings)[0].path.parent
    (root / ".partial-2026-12-04T000000Z").mkdir()

    found = [backup.name for backup in list_backups(services.settings)]

    assert found == ["2026-12-03T000000Z", "2026-12-02T000000Z"]


async def test_a_damaged_backup_is_named(services):
    backup = await make_backup(services.settings, services.db, datetime(2026, 12, 1, tzinfo=UTC))
    dump = backup.path / "han_solo.dump"
    dump.write_bytes(dump.read_bytes()[:-1])

    with pytest.raises(BackupFailed, match=r"han_solo\.dump is missing or damaged"):
        await verify_backup(backup)


async def test_a_backup_that_can_not_be_written_leaves_the_older_ones(services, tmp_path):
    await make_backup(services.settings, services.db, datetime(2026, 12, 1, tzinfo=UTC))
    blocked = tmp_path / "file"
    blocked.write_text("")
    settings = services.settings.model_copy(update={"backups": blocked / "below"})

    with pytest.raises(BackupFailed, match="can not be written"):
        await make_backup(settings, services.db, datetime(2026, 12, 2, tzinfo=UTC))

    assert len(list_backups(services.settings)) == 1


async def test_every_table_of_the_memory_is_exported(services):
    from han_solo.store.queries import QUERIES

    text = (QUERIES / "exports.sql").read_text(encoding="utf-8")
    async with services.db.connection() as connection:
        rows = await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname IN ('memory', 'framework')"
        )
    names = {row["tablename"] for row in rows} - DERIVED
    missing = [name for name in sorted(names) if f"memory.{name} " not in text]
    assert missing == []
