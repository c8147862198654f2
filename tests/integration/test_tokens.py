"""Tokens in a real Postgres: shown once, verified, rotated, revoked."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from han_solo.errors import NotFound, StoreError, Unauthenticated, UsageError
from han_solo.principals import KIND_SCOPES, MEMORY_READ, MEMORY_WRITE
from han_solo.tokens import service
from han_solo.tokens.service import Tokens

from .store_fixtures import StoppedClock, migrated

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


@pytest.fixture
def clock():
    return StoppedClock(NOW)


@pytest.fixture
def tokens(db, clock):
    return Tokens(db, clock)


async def fetch(db, sql, *values):
    async with db.connection() as connection:
        return await connection.fetch(sql, *values)


async def refused(tokens, token):
    with pytest.raises(Unauthenticated) as caught:
        await tokens.verify(token)
    return caught.value.message


@pytest.mark.parametrize("kind", KIND_SCOPES)
async def test_a_token_makes_its_bearer_a_principal(tokens, kind):
    issued = await tokens.create("ren", kind)
    principal = await tokens.verify(issued.token)
    assert (principal.name, principal.kind) == ("ren", kind)
    assert principal.scopes == KIND_SCOPES[kind]
    assert principal.agent_id is None


async def test_a_token_carries_the_scopes_it_was_given_and_no_more(tokens):
    issued = await tokens.create("reader", "operator", [MEMORY_READ])
    assert (await tokens.verify(issued.token)).scopes == {MEMORY_READ}


async def test_the_secret_is_nowhere_in_the_database(tokens, db):
    issued = await tokens.create("ren", "agent")
    secret = issued.token.rpartition("_")[2]
    (row,) = await fetch(db, "SELECT t::text AS text FROM han_solo.tokens AS t")
    assert secret not in row["text"]
    assert secret.encode().hex() not in row["text"]


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1] + ("A" if token[-1] != "A" else "B"),
        lambda token: token[:3] + "zzzzzzzz" + token[11:],
        lambda token: token.upper(),
        lambda token: token + "x",
        lambda token: token[:-1],
        lambda _token: "",
        lambda _token: "'; DROP TABLE han_solo.tokens; --",
        lambda _token: "hs_\0",
        lambda _token: "\ud800",
    ],
)
async def test_anything_but_the_token_is_refused_and_tells_nothing(tokens, change):
    issued = await tokens.create("ren", "agent")
    message = await refused(tokens, change(issued.token))
    assert "ren" not in message


async def test_a_name_is_taken_while_its_token_lives(tokens):
    await tokens.create("ren", "agent")
    with pytest.raises(UsageError, match="live token 'ren' already") as caught:
        await tokens.create("ren", "client")
    assert "rotate ren" in caught.value.hint
    await tokens.revoke("ren")
    await tokens.create("ren", "client")


async def test_of_two_callers_at_once_one_gets_the_name(tokens, db):
    results = await asyncio.gather(
        *(tokens.create("ren", "agent") for _ in range(8)), return_exceptions=True
    )
    assert sum(isinstance(result, UsageError) for result in results) == 7
    assert len(await tokens.list()) == 1


async def test_a_token_is_dead_from_its_expiry_on_and_its_name_is_free(tokens, clock):
    issued = await tokens.create("ren", "agent", expires_at=NOW + MINUTE)
    clock.moment = NOW + MINUTE - timedelta(microseconds=1)
    await tokens.verify(issued.token)
    clock.moment = NOW + MINUTE
    assert await refused(tokens, issued.token) == "The token 'ren' has expired."
    assert await tokens.list() == ()
    assert (await tokens.create("ren", "agent")).record.name == "ren"


async def test_a_token_that_would_have_expired_is_not_made(tokens):
    with pytest.raises(UsageError, match="expired already"):
        await tokens.create("ren", "agent", expires_at=NOW)
    assert await tokens.list(include_revoked=True) == ()


async def test_a_revoked_token_is_dead_at_once_and_stays_on_record(tokens):
    issued = await tokens.create("ren", "agent")
    await tokens.revoke("ren")
    assert await refused(tokens, issued.token) == "The token 'ren' was revoked."
    assert await tokens.list() == ()
    (record,) = await tokens.list(include_revoked=True)
    assert record.revoked_at == NOW


async def test_what_ended_says_what_makes_another(tokens, clock):
    revoked = await tokens.create("cc", "client")
    await tokens.revoke("cc")
    expired = await tokens.create("ren", "agent", expires_at=NOW + MINUTE)
    clock.moment += 2 * MINUTE
    hints = {}
    for issued in (revoked, expired):
        with pytest.raises(Unauthenticated) as caught:
            await tokens.verify(issued.token)
        hints[issued.record.name] = caught.value.hint
    assert "tokens create cc --kind client" in hints["cc"]
    assert "tokens rotate ren" in hints["ren"]
    await tokens.create("cc", "client")
    await tokens.rotate("ren")


async def test_revoking_by_id_twice_changes_nothing_the_second_time(tokens, clock):
    issued = await tokens.create("ren", "agent")
    await tokens.revoke(issued.record.id)
    clock.moment += MINUTE
    (record,) = await tokens.revoke(issued.record.id)
    assert record.revoked_at == NOW


@pytest.mark.parametrize("name", ["nobody", "abcdefgh"])
async def test_revoking_what_is_not_there_says_where_to_look(tokens, name):
    with pytest.raises(NotFound, match=f"no live token '{name}'") as caught:
        await tokens.revoke(name)
    assert "list --all" in caught.value.hint


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "Ren"])
async def test_names_that_can_not_be_are_refused_before_the_database_is_asked(tokens, name):
    for refuse in (tokens.revoke, tokens.rotate):
        with pytest.raises(UsageError, match="can not be the name"):
            await refuse(name)


async def test_rotating_replaces_the_token_at_once(tokens):
    old = await tokens.create("ren", "agent", [MEMORY_READ, MEMORY_WRITE])
    new = await tokens.rotate("ren")
    assert new.token != old.token
    assert await refused(tokens, old.token) == "The token 'ren' was revoked."
    principal = await tokens.verify(new.token)
    assert (principal.kind, principal.scopes) == ("agent", {MEMORY_READ, MEMORY_WRITE})


async def test_a_grace_keeps_the_old_token_good_until_it_ends(tokens, clock):
    old = await tokens.create("ren", "agent")
    clock.moment = NOW + MINUTE
    new = await tokens.rotate("ren", grace=10 * MINUTE)
    await tokens.verify(old.token)
    await tokens.verify(new.token)
    states = [record.state(clock.now()) for record in await tokens.list()]
    assert states == ["expiring", "live"]
    clock.moment = NOW + 11 * MINUTE
    await refused(tokens, old.token)
    await tokens.verify(new.token)


async def test_revoking_a_name_ends_the_one_in_its_grace_too(tokens):
    old = await tokens.create("ren", "agent")
    new = await tokens.rotate("ren", grace=10 * MINUTE)
    assert len(await tokens.revoke("ren")) == 2
    await refused(tokens, old.token)
    await refused(tokens, new.token)


@pytest.mark.parametrize("grace", [-MINUTE, service.MAX_GRACE + MINUTE])
async def test_a_grace_out_of_range_is_refused(tokens, grace):
    issued = await tokens.create("ren", "agent")
    with pytest.raises(UsageError, match="0 to 24 hours"):
        await tokens.rotate("ren", grace=grace)
    await tokens.verify(issued.token)


async def test_a_rotated_token_lives_as_long_again(tokens, clock):
    await tokens.create("ren", "agent", expires_at=NOW + 90 * MINUTE)
    clock.moment = NOW + 100 * MINUTE  # it may have expired
    assert (await tokens.rotate("ren")).record.expires_at == NOW + 190 * MINUTE


async def test_of_two_that_rotate_at_once_one_is_told_and_one_token_lives(tokens):
    await tokens.create("ren", "agent")
    results = await asyncio.gather(
        *(tokens.rotate("ren", grace=MINUTE) for _ in range(4)), return_exceptions=True
    )
    done = [result for result in results if not isinstance(result, Exception)]
    for result in results:
        assert result in done or isinstance(result, StoreError)
    live = [record for record in await tokens.list() if record.state(NOW) == "live"]
    assert len(live) == 1
    assert live[0] in [result.record for result in done]


async def test_rotating_what_is_not_there_says_how_to_make_one(tokens):
    with pytest.raises(NotFound, match="no live token 'ren'") as caught:
        await tokens.rotate("ren")
    assert "tokens create" in caught.value.hint


async def test_use_is_noted_once_a_minute(tokens, db, clock):
    issued = await tokens.create("ren", "agent")
    seen = []
    for seconds in (0, 30, 59, 61, 90, 122):
        clock.moment = NOW + timedelta(seconds=seconds)
        await tokens.verify(issued.token)
        (row,) = await fetch(db, "SELECT last_used_at, xmin::text AS version FROM han_solo.tokens")
        seen.append((int((row["last_used_at"] - NOW).total_seconds()), row["version"]))
    assert [second for second, _ in seen] == [0, 0, 0, 61, 61, 122]
    assert len({version for _, version in seen}) == 3  # the row was written three times


async def test_a_scope_that_the_kind_no_longer_has_is_not_granted(tokens, db):
    issued = await tokens.create("ren", "agent")
    await fetch(db, "UPDATE han_solo.tokens SET scopes = scopes || '{admin,new:scope}'")
    assert (await tokens.verify(issued.token)).scopes == KIND_SCOPES["agent"]


@pytest.mark.parametrize(
    "column",
    [
        "id = 'ABCDEFGH'",
        "id = 'abc'",
        "name = 'Ren'",
        "name = ''",
        "kind = 'root'",
        "scopes = '{}'",
        "secret_sha256 = '\\x00'",
        "expires_at = created_at",
    ],
)
async def test_the_database_refuses_what_the_service_would(tokens, db, column):
    await tokens.create("ren", "agent")
    with pytest.raises(asyncpg.CheckViolationError):
        await fetch(db, f"UPDATE han_solo.tokens SET {column}")


async def test_the_database_refuses_a_second_live_token_of_a_name(tokens, db):
    await tokens.create("ren", "agent")
    with pytest.raises(asyncpg.UniqueViolationError):
        await fetch(
            db,
            "INSERT INTO han_solo.tokens (id, name, kind, scopes, secret_sha256, created_at) "
            "SELECT 'zzzzzzzz', name, kind, scopes, secret_sha256, created_at FROM han_solo.tokens",
        )
