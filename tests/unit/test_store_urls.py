"""Database URLs: what is shown of them, and what is refused without being repeated."""

import pytest

from han_solo.errors import SettingsError
from han_solo.store.urls import describe_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:hunter2@db.example:5432/memory", "db.example:5432/memory"),
        ("postgres://me@db.example/memory?sslmode=require", "db.example/memory"),
        ("postgresql://me:p%40%2Fss@127.0.0.1:1/memory", "127.0.0.1:1/memory"),
        ("postgresql://me:x@[::1]:5432/memory", "[::1]:5432/memory"),
        ("postgresql://me:x@one:1,two:2/memory", "one:1,two:2/memory"),
        ("postgresql:///memory?host=/run/postgresql", "/run/postgresql/memory"),
        ("postgresql:///memory", "the local server/memory"),
        ("postgresql://me:x@db.example?dbname=memory", "db.example/memory"),
    ],
)
def test_host_port_and_database_are_shown_and_nothing_else(url, shown):
    assert describe_url(url) == shown


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "no scheme"),
        ("hunter2", "no scheme"),
        ("mysql://me:hunter2@db/memory", "mysql://"),
        ("postgresql+asyncpg://me:hunter2@db/memory", "postgresql+asyncpg://"),
        ("postgresql://me:hunter2@@db/memory", "reserved character"),
        ("postgresql://me:hun/ter2@db/memory", "reserved character"),
        ("postgresql://me:hun#ter2@db/memory", "reserved character"),
        ("postgresql://me:hun?ter2@db/memory", "reserved character"),
        ("postgresql://me:hunter2/memory", "host or a port"),
        ("postgresql://me:hunter2@db:port/memory", "host or a port"),
        ("postgresql://me:hunter2@[::1/memory", "can not be read"),
        ("postgresql://me:hunter2@db/", "no database"),
        ("postgresql://me:hunter2@db/memory?channel_binding=require", "channel_binding"),
    ],
)
def test_a_url_that_can_not_be_used_is_refused_without_its_password(url, message):
    with pytest.raises(SettingsError) as caught:
        describe_url(url, "SOME_SETTING")
    assert caught.value.message.startswith("SOME_SETTING ")
    assert message in caught.value.message
    assert "ter2" not in str(caught.value)
    assert caught.value.hint
