"""The house rules of the named queries, and of the protocols that state them."""

import re
from pathlib import Path
from typing import Protocol

import aiosql
import pytest

from han_solo.store import queries
from han_solo.store.queries import QUERIES, load_queries, names_of

KEYWORDS = (
    "select from where order by group join on insert into values returning update set delete limit "
    "and or not in is null as with left right inner exists conflict do asc desc distinct"
).split()

TABLE = re.compile(
    r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?!SET\b|ROWS\b|LATERAL\b)([a-z_][\w.]*)", re.IGNORECASE
)
CTE = re.compile(r"(?:\bWITH(?:\s+RECURSIVE)?|,)\s+(\w+)(?:\s*\([^)]*\))?\s+AS\b", re.IGNORECASE)


def load_all():
    for path in sorted(QUERIES.glob("*.sql")):
        loaded = aiosql.from_path(path, "asyncpg")
        for name in names_of(loaded):
            yield pytest.param(getattr(loaded, name), id=f"{path.stem}.{name}")


STATEMENTS = list(load_all())


def bare(sql):
    """Return the statement without strings, quoted names and comments."""
    return re.sub(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*", "", sql)


@pytest.mark.parametrize("query", STATEMENTS)
def test_each_query_says_what_it_does_in_one_line(query):
    description = (query.__doc__ or "").strip()
    assert re.fullmatch(r"[A-Z][^\n]{8,110}\.", description), description


@pytest.mark.parametrize("query", STATEMENTS)
def test_columns_are_named(query):
    assert not re.search(r"(\bSELECT\s+|\bRETURNING\s+|,\s*|\.)\*", bare(query.sql), re.IGNORECASE)


@pytest.mark.parametrize("query", STATEMENTS)
def test_tables_are_named_with_their_schema(query):
    sql = re.sub(r"\bDISTINCT FROM\b", "", bare(query.sql))
    known = {match.lower() for match in CTE.findall(sql)}
    for table in TABLE.findall(sql):
        assert "." in table or table.lower() in known, table


@pytest.mark.parametrize("query", STATEMENTS)
def test_keywords_are_upper_case(query):
    lower = re.findall(rf"\b({'|'.join(KEYWORDS)})\b", bare(query.sql))
    assert not lower


@pytest.mark.parametrize("query", STATEMENTS)
def test_sql_is_never_built_from_text(query):
    assert "%s" not in query.sql
    assert "{" not in query.sql


def test_no_sql_is_written_in_python():
    """Text of statements belongs in the files; what stays in Python is listed with its reason."""
    allowed = {
        ("store", "database.py"),  # a sign of life
        ("store", "migrate.py"),  # SET takes no parameters
        ("embedded", "postgres_setup.py"),  # roles and databases are made, not queried
        ("embedded", "launcher.py"),  # runs without han_solo
        ("embedded", "check.py"),
    }
    sql = re.compile(r"\"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM)\s")
    package = Path(queries.__file__).resolve().parents[1]
    found = {
        path.relative_to(package).parts
        for path in package.rglob("*.py")
        if sql.search(path.read_text(encoding="utf-8"))
    }
    assert found <= allowed


class Whole(Protocol):
    async def fetch_it(self, conn, *, key): ...


@pytest.fixture
def subject(tmp_path, monkeypatch):
    monkeypatch.setattr(queries, "QUERIES", tmp_path)
    (tmp_path / "it.sql").write_text(
        "-- name: fetch_it(key)^\n-- Read it.\nSELECT value FROM some.table WHERE key = :key;\n"
    )
    return "it"


def test_a_protocol_that_states_the_file_is_taken(subject):
    assert load_queries(subject, Whole).fetch_it.__doc__ == "Read it."


def test_a_query_that_the_protocol_does_not_state_is_an_error(subject):
    class Empty(Protocol):
        pass

    with pytest.raises(TypeError, match="differ in fetch_it"):
        load_queries(subject, Empty)


def test_a_parameter_that_the_protocol_does_not_state_is_an_error(subject):
    class Other(Protocol):
        async def fetch_it(self, conn, *, name): ...

    with pytest.raises(TypeError, match="differ in fetch_it"):
        load_queries(subject, Other)


def test_a_number_behind_a_mark_can_be_another(tmp_path, monkeypatch):
    monkeypatch.setattr(queries, "QUERIES", tmp_path)
    (tmp_path / "it.sql").write_text(
        "-- name: fetch_it(key)^\n-- Read it.\nSELECT a::halfvec(/*width*/256) FROM some.t_/*id*/1"
        " WHERE key = :key;\n"
    )
    as_it_stands = load_queries("it", Whole).fetch_it.sql
    assert "256)" in as_it_stands
    assert "1 WHERE" in as_it_stands
    changed = load_queries("it", Whole, numbers={"width": 1024, "id": 7}).fetch_it.sql
    assert "halfvec(1024)" in changed
    assert "some.t_7 " in changed
