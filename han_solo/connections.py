"""Where each part is reached: the settings first, then what ``up`` left in the home directory.

Every command, the bridge and the supervisor ask here, so that they can not disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from .errors import SettingsError
from .home import Home
from .settings import Settings

DATABASE: Final = "han_solo"
DATABASE_ROLE: Final = "han_solo"
LETTA_DATABASE: Final = "letta"
LETTA_ROLE: Final = "letta"

SECRET_OF_ROLE: Final = {
    "postgres": "postgres_password",
    DATABASE_ROLE: "han_solo_db_password",
    LETTA_ROLE: "letta_db_password",
}
"""File names under ``secrets/`` of the embedded Postgres' roles."""

LETTA_PASSWORD: Final = "letta_password"  # noqa: S105 - a file's name, not a password
LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Connections:
    """Addresses of the parts of one installation; each property may raise ``SettingsError``."""

    settings: Settings

    @property
    def home(self) -> Home:
        return self.settings.at

    @property
    def database_is_embedded(self) -> bool:
        return self.settings.database_url is None

    @property
    def letta_is_embedded(self) -> bool:
        return self.settings.letta_base_url is None

    @property
    def database_url(self) -> str:
        """Return the DSN of han-solo's own database, password in it."""
        if self.settings.database_url is not None:
            return self.settings.database_url.get_secret_value()
        port = self.home.load_endpoints().postgres_port
        password = self.home.read_secret(SECRET_OF_ROLE[DATABASE_ROLE])
        if not port or not password:
            raise SettingsError(
                f"There is no database: none is set and {self.home.root} holds none.",
                hint="Run `han-solo up` (scripts/up) first, or set HAN_SOLO_DATABASE_URL.",
            )
        return postgres_url(port, DATABASE_ROLE, password, DATABASE)

    @property
    def database_direct_url(self) -> str | None:
        """Return the DSN around a transaction pooler, or None where there is no pooler."""
        direct = self.settings.database_direct_url
        return direct.get_secret_value() if direct else None

    @property
    def letta_url(self) -> str:
        if self.settings.letta_base_url:
            return self.settings.letta_base_url
        port = self.home.load_endpoints().letta_port
        if not port:
            raise SettingsError(
                f"There is no Letta server: none is set and {self.home.root} holds none.",
                hint="Run `han-solo up` (scripts/up) first, or set LETTA_BASE_URL.",
            )
        return f"http://{LOOPBACK}:{port}"

    @property
    def letta_password(self) -> str | None:
        if self.settings.letta_password is not None:
            return self.settings.letta_password.get_secret_value()
        return self.home.read_secret(LETTA_PASSWORD) if self.letta_is_embedded else None

    @property
    def model(self) -> str | None:
        """Return the handle that replaces the spec's: the one set, or else what ``up`` chose."""
        if self.settings.model or not self.letta_is_embedded:
            return self.settings.model
        return self.home.read_model()

    @property
    def bridge_port(self) -> int:
        """Return the port set, or else the kept one (0: not chosen yet)."""
        return self.settings.bridge_port or self.home.load_endpoints().bridge_port

    @property
    def bridge_local_url(self) -> str:
        """Return the bridge's URL on this machine, without a path."""
        if not self.bridge_port:
            raise SettingsError(
                "The bridge was never started here.",
                hint="Run `han-solo up` (scripts/up) or `han-solo bridge` first.",
            )
        host = self.settings.bridge_host
        if host in {"0.0.0.0", "::", ""}:  # noqa: S104 - recognised, not bound
            host = LOOPBACK
        return f"http://{f'[{host}]' if ':' in host else host}:{self.bridge_port}"

    @property
    def bridge_mcp_url(self) -> str:
        """Return the URL that Letta is given; ends in ``/mcp``."""
        return self.settings.bridge_url or f"{self.bridge_local_url}/mcp"


def postgres_url(port: int, role: str, password: str, database: str) -> str:
    """Build the DSN of the embedded Postgres."""
    return f"postgresql://{quote(role)}:{quote(password, safe='')}@{LOOPBACK}:{port}/{database}"


def without_password(url: str) -> str:
    """Return a URL that may be shown: user and password taken out."""
    parts = urlsplit(url)
    host = parts.hostname or "?"
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path}"
