"""Versions are history: the database itself refuses to change them, to their owner too."""

from __future__ import annotations

import asyncpg
import pytest

from han_solo.blocks.model import digest
from han_solo.blocks.records import Text
from tests.integration.blocks_fixtures import SCOTT, open_lab
from tests.integration.store_fixtures import superuser

VERSIONS = "memory.agent_core_block_versions"
INSERT = f"""
    INSERT INTO {VERSIONS} (block_id, number, label, agent_id, value, sha256, author_kind, author,
        reason, origin, created_at)
    VALUES ('block-1', $1, 'threads', 'agent-1', $2, $3, 'agent', 'ren', '', 'write', now())
"""
CHANGES = {
    "update": f"UPDATE {VERSIONS} SET value = value",
    "update of no row": f"UPDATE {VERSIONS} SET reason = 'x' WHERE number = 99",
    "delete": f"DELETE FROM {VERSIONS}",
    "delete of no row": f"DELETE FROM {VERSIONS} WHERE number = 99",
    "truncate": f"TRUNCATE {VERSIONS}",
    "truncate cascade": f"TRUNCATE {VERSIONS} CASCADE",
    "upsert": INSERT + " ON CONFLICT (block_id, number) DO UPDATE SET value = 'x'",
    "merge": f"""
        MERGE INTO {VERSIONS} AS v USING (SELECT 1 AS n) AS s ON v.number = s.n
        WHEN MATCHED THEN DELETE
    """,
}


@pytest.fixture
async def lab(database_url):
    async with open_lab(database_url) as lab:
        await lab.write("one", "two")
        yield lab


@pytest.fixture(params=["owner", "owner as replica", "superuser", "superuser as replica"])
async def session(request, database_url, postgres_server):
    """Yield a connection of someone with every right, who also tries to switch triggers off."""
    async with superuser(postgres_server, database_url) as connection:
        if request.param.endswith("replica"):
            await connection.execute("SET session_replication_role = replica")
        if request.param.startswith("owner"):
            await connection.execute("SET ROLE han_solo")
            owner = await connection.fetchval(
                "SELECT tableowner FROM pg_tables WHERE tablename = 'agent_core_block_versions'"
            )
            assert owner == "han_solo"
        yield connection


@pytest.mark.parametrize("change", CHANGES)
async def test_versions_can_not_be_changed(lab, session, change):
    arguments = (2, "x", digest("x")) if change == "upsert" else ()
    with pytest.raises(asyncpg.RestrictViolationError, match=r"is refused|does not follow"):
        await session.execute(CHANGES[change], *arguments)
    assert await lab.texts() == ["old", "one", "two"]


@pytest.mark.parametrize("number", [1, 3, 5, 99])
async def test_a_version_follows_the_last_one(lab, number):
    async with lab.db.connection() as connection:
        with pytest.raises(asyncpg.RestrictViolationError, match="does not follow version 3"):
            await connection.execute(INSERT, number, "x", digest("x"))
        await connection.execute(INSERT, 4, "x", digest("x"))


async def test_the_hash_is_checked_in_the_database(lab):
    async with lab.db.connection() as connection:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(INSERT, 4, "x", digest("y"))


async def test_an_intent_becomes_one_version_only(lab):
    async with lab.db.connection() as connection:
        doubled = await connection.fetchval(
            f"SELECT count(*) - count(DISTINCT intent_id) FROM {VERSIONS} WHERE number > 1"
        )
        assert doubled == 0
        unique = await connection.fetchval(
            "SELECT count(*) FROM pg_constraint"
            " WHERE conrelid = 'memory.agent_core_block_versions'::regclass AND contype = 'u'"
        )
        assert unique == 1


async def test_one_write_of_a_block_is_open_at_a_time(lab):
    text = Text("block-1", "threads", "agent-1", "x", SCOTT, "", "write")
    await lab.versions.open_intent(text, 3)
    with pytest.raises(asyncpg.UniqueViolationError):
        await lab.versions.open_intent(text, 3)


@pytest.mark.parametrize("value", ["", "\ufeffx\r\n\t \U0001f600 ", "x" * 1000])
async def test_a_text_is_kept_to_the_byte(lab, value):
    written = await lab.blocks().write("threads", value)
    version = await lab.blocks().version("threads", written.version)
    assert version.value.encode() == value.encode()
    assert version.length == len(value)
