"""The directory where one installation keeps its state, and what lies where in it.

``Home`` is data, not a cache: Postgres' files, the generated passwords, the tokens and the kept
ports. What can be built again (Letta's environment, downloads) lies under the cache directory.
Directories are 0700 and files 0600. As root the home itself is 0711, since Postgres runs as a user
of its own and has to reach its data directory below; it can be passed through, not listed.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs

from .errors import SettingsError

_ROOT_HOME = Path("/var/lib/han-solo")  # root's own home is closed to the user Postgres runs as
_ROOT_CACHE = Path("/var/cache/han-solo")


def default_home() -> Path:
    """Return where state is kept when ``HAN_SOLO_HOME`` is not set."""
    return _ROOT_HOME if os.geteuid() == 0 else platformdirs.user_data_path("han-solo")


def default_cache() -> Path:
    """Return where what can be built again is kept when ``HAN_SOLO_CACHE`` is not set."""
    return _ROOT_CACHE if os.geteuid() == 0 else platformdirs.user_cache_path("han-solo")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The ports of the embedded parts, chosen once and kept (0: not chosen yet).

    A changed bridge port makes Letta's whole list of MCP servers an error, and a changed model
    port orphans the endpoint stored in each agent's ``llm_config``.
    """

    postgres_port: int = 0
    letta_port: int = 0
    bridge_port: int = 0
    model_port: int = 0


@dataclass(frozen=True, slots=True)
class Home:
    """Paths, secrets and kept ports of one installation."""

    root: Path

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def letta(self) -> Path:
        return self.root / "letta"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def tokens(self) -> Path:
        return self.root / "tokens"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets"

    def create(self) -> None:
        """Make the directories with their modes; existing ones get theirs back."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self.root.chmod(0o711 if os.geteuid() == 0 else 0o700)
            for path in (self.letta, self.logs, self.run, self.tokens, self.secrets):
                path.mkdir(exist_ok=True)
                path.chmod(0o700)
        except OSError as error:
            raise SettingsError(
                f"The home directory {self.root} can not be made: {error.strerror}.",
                hint="Set HAN_SOLO_HOME to a directory you may write.",
            ) from error

    def read_secret(self, name: str) -> str | None:
        return _read(self.secrets / name)

    def ensure_secret(self, name: str, make: Callable[[], str] | None = None) -> str:
        """Return the secret of that name, made once (32 random bytes) and kept in a 0600 file."""
        found = self.read_secret(name)
        if found:
            return found
        value = make() if make else secrets.token_urlsafe(32)
        write_private(self.secrets / name, value)
        return value

    def read_token(self, name: str) -> str | None:
        return _read(self.tokens / name)

    def write_token(self, name: str, token: str) -> Path:
        path = self.tokens / name
        write_private(path, token)
        return path

    def read_model(self) -> str | None:
        """Return the model handle that ``up`` chose in place of the spec's, if it did."""
        return _read(self.run / "model")

    def write_model(self, handle: str | None) -> None:
        if handle:
            write_private(self.run / "model", handle)
        else:
            (self.run / "model").unlink(missing_ok=True)

    def read_last_model(self) -> str | None:
        """Return the real model that the agent was last started with, or None."""
        return _read(self.run / "last_model")

    def write_last_model(self, handle: str) -> None:
        write_private(self.run / "last_model", handle)

    def load_endpoints(self) -> Endpoints:
        text = _read(self.run / "endpoints.json")
        if text is None:
            return Endpoints()
        try:
            stored = json.loads(text)
            return Endpoints(**{key: int(value) for key, value in stored.items()})
        except (ValueError, TypeError, AttributeError) as error:
            path = self.run / "endpoints.json"
            raise SettingsError(
                f"{path} can not be read: {error}.",
                hint="Restore it from a backup; deleting it would give the bridge a new port.",
            ) from error

    def write_endpoints(self, endpoints: Endpoints) -> None:
        write_private(self.run / "endpoints.json", json.dumps(asdict(endpoints), indent=2))


def write_private(path: Path, text: str) -> None:
    """Write a 0600 file whole or not at all; it ends in a line break."""
    write_private_bytes(path, (text + "\n").encode())


def write_private_bytes(path: Path, content: bytes) -> None:
    """Write a 0600 file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=path.parent)  # 0600 from the start
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(
            f"{path} can not be read: {error.strerror}.", hint="Run as the user that owns it."
        ) from error
