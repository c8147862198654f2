"""``han-solo tokens`` as an operator runs it."""

import json
import os
import pty
import subprocess
import sys

import pytest

from han_solo.store.database import Database
from han_solo.tokens.service import Tokens

from .store_fixtures import migrated

MAIN = "from han_solo.cli.tokens import app; app()"
TOKEN_CHARS = len("hs_") + 8 + 1 + 43


@pytest.fixture
def tokens_command(database_url, tmp_path):
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HAN_SOLO_HOME": str(tmp_path / "home"),
        "HAN_SOLO_DATABASE_URL": database_url,
    }

    def run(*arguments, **options):
        return subprocess.run(
            [sys.executable, "-c", MAIN, *arguments],
            **(
                {"env": environment, "cwd": tmp_path, "capture_output": True, "text": True}
                | options
            ),
            check=False,
        )

    run.environment = environment
    return run


async def verify(database_url, token):
    db = await Database.connect(database_url)
    try:
        return await Tokens(db).verify(token)
    finally:
        await db.close()


async def test_a_new_token_is_alone_on_stdout(tokens_command, database_url):
    done = tokens_command("create", "cc", "--kind", "client", "--expires", "90d")
    assert done.returncode == 0, done.stderr
    token = done.stdout.removesuffix("\n")
    assert len(token) == TOKEN_CHARS
    assert "Token cc (client, until " in done.stderr
    assert token not in done.stderr
    assert (await verify(database_url, token)).name == "cc"


async def test_a_token_can_be_written_into_a_file(tokens_command, database_url, tmp_path):
    path = tmp_path / "token"
    with path.open("w") as file:
        tokens_command("create", "cc", "--kind", "client", capture_output=False, stdout=file)
    assert (await verify(database_url, path.read_text().strip())).kind == "client"


def test_quiet_says_nothing_on_stderr(tokens_command):
    tokens_command("create", "cc", "--kind", "client")
    done = tokens_command("rotate", "cc", "--quiet", "--grace", "10m")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout) == TOKEN_CHARS + 1


def test_on_a_terminal_it_says_that_it_is_shown_once(tokens_command):
    tokens_command("list")  # migrates, so that no log line is in between
    ours, theirs = pty.openpty()
    done = tokens_command(
        "create", "cc", "--kind", "client", capture_output=False, stdout=theirs, stderr=-1
    )
    os.close(theirs)
    shown = os.read(ours, 1000).decode().strip()
    os.close(ours)
    assert len(shown) == TOKEN_CHARS
    assert "This is the only time it is shown" in done.stderr


def test_the_list_shows_states_and_no_secrets(tokens_command):
    secret = tokens_command("create", "cc", "--kind", "client").stdout.strip().rpartition("_")[2]
    tokens_command("create", "ren", "--kind", "agent", "--scope", "memory:read")
    tokens_command("revoke", "cc")
    done = tokens_command("list", "--all", "--json")
    assert secret not in done.stdout
    listed = {record["name"]: record for record in json.loads(done.stdout)}
    assert (listed["cc"]["state"], listed["ren"]["state"]) == ("revoked", "live")
    assert listed["ren"]["scopes"] == ["memory:read"]
    table = tokens_command("list").stdout
    assert [line.split()[0] for line in table.splitlines()] == ["name", "ren"]


def test_an_empty_list_says_what_to_do(tokens_command):
    assert "tokens create NAME" in tokens_command("list").stdout
    assert json.loads(tokens_command("list", "--json").stdout) == []


def test_the_scopes_are_explained_without_a_database(tokens_command):
    environment = tokens_command.environment | {"HAN_SOLO_DATABASE_URL": ""}
    done = tokens_command("scopes", env=environment)
    assert done.returncode == 0
    assert "operator:write" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("create", "Cc", "--kind", "client"), "'Cc' can not be the name of a token."),
        (("create", "cc", "--kind", "root"), "There is no kind 'root'."),
        (("create", "cc", "--kind", "client", "--scope", "x"), "There is no scope x."),
        (("create", "cc", "--kind", "agent", "--scope", "admin"), "can not be given admin."),
        (("create", "cc", "--kind", "client", "--expires", "soon"), "neither a span nor a date."),
        (("create", "cc", "--kind", "client", "--expires", "2020-01-01"), "expired already."),
        (("create", "taken", "--kind", "client"), "There is a live token 'taken' already."),
        (("revoke", "nobody"), "There is no live token 'nobody'."),
        (("rotate", "nobody"), "There is no live token 'nobody'."),
        (("rotate", "taken", "--grace", "2d"), "from 0 to 24 hours."),
    ],
)
async def test_bad_input_gets_a_sentence_and_exit_code_2_and_changes_nothing(
    tokens_command, database_url, arguments, words
):
    async with migrated(database_url) as db:
        tokens = Tokens(db)
        await tokens.create("taken", "client")
        before = await tokens.list(include_revoked=True)
        done = tokens_command(*arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert words in done.stderr
        assert "Traceback" not in done.stderr
        assert await tokens.list(include_revoked=True) == before


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "There is no database"),
        ("postgresql://me:hunter2@127.0.0.1:1/memory", "Nothing listens at 127.0.0.1:1/memory"),
        ("mysql://me:hunter2@127.0.0.1/memory", "not a Postgres URL"),
    ],
)
def test_a_database_that_is_not_there_is_told_without_its_password(tokens_command, url, words):
    environment = tokens_command.environment | {"HAN_SOLO_DATABASE_URL": url}
    done = tokens_command("list", env=environment)
    assert done.returncode == 2
    assert words in done.stderr
    assert "hunter2" not in done.stderr
    assert "Traceback" not in done.stderr


async def test_a_token_in_the_home_is_replaced_there_and_nothing_dies_at_once(
    tokens_command, database_url, tmp_path
):
    path = tmp_path / "home" / "tokens" / "agent"
    assert tokens_command("create", "agent", "--kind", "agent", "--write").returncode == 0
    old = path.read_text().strip()
    assert path.stat().st_mode & 0o777 == 0o600

    done = tokens_command("rotate", "agent")

    assert done.returncode == 0, done.stderr
    new = path.read_text().strip()
    assert new != old
    assert new not in done.stdout + done.stderr
    assert (await verify(database_url, new)).name == "agent"
    assert (await verify(database_url, old)).name == "agent"
    assert "sync-tools" in done.stderr


@pytest.mark.parametrize("by", ["name", "id"])
@pytest.mark.parametrize("own", ["agent", "operator"])
async def test_a_token_that_the_installation_works_with_is_not_revoked(
    tokens_command, database_url, tmp_path, own, by
):
    tokens_command("create", own, "--kind", own, "--write")
    (listed,) = json.loads(tokens_command("list", "--json").stdout)

    done = tokens_command("revoke", listed[by])

    assert done.returncode == 2
    assert {"agent": "has no tools", "operator": "can administer"}[own] in done.stderr
    assert f"tokens rotate {own}" in done.stderr
    kept = (tmp_path / "home" / "tokens" / own).read_text().strip()
    assert (await verify(database_url, kept)).name == own


async def test_the_old_one_of_a_rotated_token_is_revoked_by_its_id(tokens_command, database_url):
    tokens_command("create", "agent", "--kind", "agent", "--write")
    (old,) = json.loads(tokens_command("list", "--json").stdout)
    tokens_command("rotate", "agent")

    assert tokens_command("revoke", old["id"]).returncode == 0

    listed = json.loads(tokens_command("list", "--all", "--json").stdout)
    assert {row["id"] == old["id"]: row["state"] for row in listed} == {
        True: "revoked",
        False: "live",
    }
