"""Migrations of a release compared with the ledger of a database; no database here."""

from datetime import UTC, datetime

import pytest

from han_solo.errors import MigrationChanged, SchemaNewer, StoreError
from han_solo.store.ledger import Applied, load_migrations, pending

WHERE = "db.example:5432/memory"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "0001_initial.sql").write_bytes(b"CREATE SCHEMA a;\nCREATE SCHEMA b;\n")
    (tmp_path / "0002_more.sql").write_bytes(b"CREATE SCHEMA c;\n")
    return tmp_path


def applied(migration, **changes):
    row = {
        "version": migration.version,
        "name": migration.title,
        "checksum": migration.checksum,
        "applied_at": datetime(2026, 1, 1, tzinfo=UTC),
        "applied_by": "0.9.0",
    }
    return Applied(**(row | changes))


def test_an_empty_ledger_leaves_all_pending_in_order(folder):
    known = load_migrations(folder)
    assert [m.title for m in pending(known, (), WHERE)] == ["0001_initial", "0002_more"]


def test_what_is_applied_is_not_pending(folder):
    known = load_migrations(folder)
    assert pending(known, [applied(known[0])], WHERE) == known[1:]
    assert pending(known, [applied(m) for m in known], WHERE) == ()


def test_a_ledger_ahead_of_the_release_names_both_releases_and_the_way_out(folder):
    known = load_migrations(folder)
    ahead = [*map(applied, known), applied(known[1], version=3, name="0003_later")]
    with pytest.raises(SchemaNewer) as caught:
        pending(known, ahead, WHERE)
    assert WHERE in caught.value.message
    assert "version 3 (0003_later)" in caught.value.message
    assert "han-solo 0.9.0" in caught.value.message
    assert "up to 2" in caught.value.message
    assert "Start han-solo 0.9.0 or newer" in caught.value.hint


@pytest.mark.parametrize("change", [{"checksum": "0" * 64}, {"name": "0001_other"}])
def test_an_applied_migration_that_differs_is_refused(folder, change):
    known = load_migrations(folder)
    with pytest.raises(MigrationChanged, match="0001_initial"):
        pending(known, [applied(known[0], **change)], WHERE)


def test_a_gap_in_the_ledger_is_refused(folder):
    known = load_migrations(folder)
    with pytest.raises(MigrationChanged, match="has no version 1, but has version 2"):
        pending(known, [applied(known[1])], WHERE)


def test_a_gap_in_the_files_is_refused(folder):
    (folder / "0004_late.sql").write_text("SELECT 1;")
    with pytest.raises(StoreError, match=r"numbered \[1, 2, 4\]"):
        load_migrations(folder)


def test_one_number_twice_is_refused(folder):
    (folder / "0002_also.sql").write_text("SELECT 1;")
    with pytest.raises(StoreError, match=r"numbered \[1, 2, 2\]"):
        load_migrations(folder)


@pytest.mark.parametrize("name", ["1_x.sql", "0003-x.sql", "x.sql", "0003_X.sql"])
def test_a_misnamed_file_is_refused(folder, name):
    (folder / name).write_text("SELECT 1;")
    with pytest.raises(StoreError, match="not named as a migration"):
        load_migrations(folder)


def test_line_ends_do_not_change_the_checksum(folder):
    before = load_migrations(folder)
    (folder / "0001_initial.sql").write_bytes(b"CREATE SCHEMA a;\r\nCREATE SCHEMA b;\r\n")
    assert [m.checksum for m in load_migrations(folder)] == [m.checksum for m in before]


def test_the_migrations_of_this_release_can_be_read():
    assert load_migrations()[0].title == "0001_initial"
