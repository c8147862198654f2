"""Settings: environment and ``.env``, prefix ``HAN_SOLO_``; each with meaning, unit and reason.

``docs/reference/settings.md`` is generated from the docstrings here. What is not set is taken from
the home directory, where ``up`` leaves the addresses and secrets of the embedded parts.
"""

from __future__ import annotations

import os
import zoneinfo
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import tzlocal
from pydantic import AliasChoices, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from .home import Home, default_cache, default_home


class Settings(BaseSettings):
    """All settings. An empty value counts as not set."""

    model_config = SettingsConfigDict(
        env_prefix="HAN_SOLO_",
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,  # those with Letta's own variable as an alias too
        use_attribute_docstrings=True,
    )

    home: Path = Field(default_factory=default_home)
    """Directory of the state: Postgres' files, secrets, tokens, kept ports. Default: the user's
    data directory; as root `/var/lib/han-solo`, since Postgres does not run as root and can not
    reach into root's home."""

    cache: Path = Field(default_factory=default_cache)
    """Directory of what can be built again, such as Letta's environment. Default: the user's cache
    directory; as root `/var/cache/han-solo`."""

    env_file: Path | None = None
    """File that is read in place of `.env`, from whatever directory a command is run in; timers
    have their secrets from one. It must be there and be readable by you alone (0600). Read from the
    environment only."""

    database_url: SecretStr | None = None
    """Postgres of han-solo's own, `postgresql://user:password@host:port/name`; needs pgvector.
    Default: the embedded one."""

    database_direct_url: SecretStr | None = None
    """The same database around the transaction pooler, for migrations and advisory locks. Default:
    `HAN_SOLO_DATABASE_URL`; must be set with `HAN_SOLO_DATABASE_POOLER=transaction`."""

    database_pooler: Literal["none", "transaction"] = "none"
    """Whether `HAN_SOLO_DATABASE_URL` leads through a pooler in transaction mode (PgBouncer,
    Supavisor, Neon): no prepared statements and no session locks are used on it then."""

    database_pool_size: int = Field(default=10, ge=1, le=200)
    """Connections, at most. 10 serves a bridge of one agent several times over, and three bridges
    stay far below Postgres' default of 100."""

    database_timeout_s: float = Field(default=30.0, gt=0)
    """Seconds that one statement may take."""

    letta_base_url: str | None = Field(
        default=None,
        validation_alias=AliasChoices("HAN_SOLO_LETTA_BASE_URL", "LETTA_BASE_URL"),
    )
    """URL of the Letta server, without `/v1`; `LETTA_BASE_URL` is read too. Default: the embedded
    one."""

    letta_password: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices(
            "HAN_SOLO_LETTA_PASSWORD", "LETTA_SERVER_PASSWORD", "LETTA_API_KEY"
        ),
    )
    """The server's password (`LETTA_SERVER_PASSWORD` and `LETTA_API_KEY` are read too)."""

    letta_timeout_s: float = Field(default=30.0, gt=0)
    """Seconds for one call to Letta that is not a message."""

    letta_message_timeout_s: float = Field(default=600.0, gt=0)
    """Seconds for one turn of the agent. Messages are never retried: after a timeout the turn may
    still run, and sending it again makes the agent hear it twice."""

    message_gap_s: float = Field(default=0.5, ge=0)
    """Seconds between the end of one turn of the agent and the beginning of the next, at least. One
    turn at a time already keeps turns from pushing each other out of the context; the pause lets a
    small Letta and the provider's rate limit breathe in a burst, and who types does not notice."""

    message_wait_s: float = Field(default=120.0, ge=0)
    """Seconds that a message waits for the agent while others have it, at most: two or three
    ordinary turns. After that nothing was sent, and the sender is told who has it."""

    letta_block_timeout_s: float = Field(default=10.0, gt=0)
    """Seconds for a block read or write from inside a tool: short, since the agent waits for it."""

    agent_spec: Path | None = None
    """The agent's spec, a TOML file in your own repo. Default: the shipped one, Ren's."""

    agent_id: str | None = None
    """Letta's id of an agent that exists already, to take it over. Default: what the database
    knows; else the agent is made from its spec."""

    person: str | None = None
    """Name of the person the agent belongs to; replaces the spec's `person`."""

    model: str | None = None
    """Model handle that replaces the spec's, as Letta lists it, such as
    `google_ai/gemini-2.5-flash`. Without any model key the rehearsal model is used."""

    bridge_host: str = "127.0.0.1"
    """Address that the bridge listens on. Loopback unless you put a TLS proxy in front of it."""

    bridge_port: int = Field(default=0, ge=0, le=65535)
    """Port that the bridge listens on. 0: picked at the first start and kept from then on, since
    Letta stores the URL and a changed one makes its list of MCP servers an error."""

    bridge_url: str | None = None
    """URL under which Letta reaches the bridge, ending in `/mcp`. Default: the loopback one, which
    only a Letta started by our launcher accepts (`han-solo doctor` tells the ways round)."""

    bridge_allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Host headers accepted beside loopback and the host of `HAN_SOLO_BRIDGE_URL`, separated by
    commas (against DNS rebinding)."""

    bridge_allowed_origins: Annotated[tuple[str, ...], NoDecode] = ()
    """Origins accepted beside the bridge's own, separated by commas."""

    bridge_name: str = Field(default="han-solo", pattern=r"^[A-Za-z0-9_-]{1,48}$")
    """Name under which the bridge is registered as an MCP server in Letta."""

    timezone: str | None = None
    """IANA name of the zone that the due times and days of jobs are counted in, such as
    `Europe/Oslo`. Default: the machine's own. Set it where machines in several zones share a
    database, so that they agree on the day."""

    backups: Path | None = None
    """Directory of the backups that the job `backup` makes. Default: `backups` in the home; better
    is another disk."""

    backups_keep: int = Field(default=14, ge=1)
    """Backups that are kept; older ones are taken away after a new one was proven whole. Two weeks
    of nights leave time to notice what went wrong."""

    transcripts: Annotated[tuple[Path, ...], NoDecode] = (Path("~/.claude/projects"),)
    """Directories with Claude Code's transcripts, a folder for each project, separated by `:`."""

    transcripts_excluded: Annotated[tuple[str, ...], NoDecode] = ()
    """Projects whose transcripts are not read, separated by commas: paths or patterns, such as
    `/home/me/private*`."""

    extensions: Annotated[tuple[Path, ...], NoDecode] = ()
    """Directories of your own with `tools/`, `guards/` or `jobs/` in them, separated by `:`. One
    that others may write is refused."""

    guard_modes: Annotated[Mapping[str, Literal["observe", "repair", "off"]], NoDecode] = Field(
        default_factory=dict
    )
    """What guards do, as `name=mode` separated by commas: `observe` records and alerts, `repair`
    applies the remedy too, `off` leaves the guard out. Default: what each guard declares
    (`han-solo guards list`)."""

    guard_every_s: Annotated[
        Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]], NoDecode
    ] = Field(default_factory=dict)
    """Seconds between two looks of a guard, as `name=seconds` separated by commas. Default: what
    each guard declares."""

    alert_urls: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    """Where findings are told, as URLs of [apprise](https://github.com/caronc/apprise) separated by
    spaces: mail, chat, push, webhooks. A finding is told once, when it opens, and once more when it
    becomes critical. The log has it too, and on a Mac a notification is shown."""

    embed_provider: Literal["local", "voyage", "openai"] = "local"
    """Who makes the vectors that search goes by: `local`, `voyage`, or `openai` for any service
    that speaks OpenAI's protocol. It counts when the memory is new; later `han-solo embed switch`
    moves what is stored from one to the other. The default needs no key and no network."""

    embed_model: str | None = None
    """Name of the model. Default: `voyage-3`, `text-embedding-3-small`, or the local model that is
    there: `potion-base-8M`, else `wordllama-256`."""

    embed_width: int | None = Field(default=None, ge=1, le=4000)
    """Numbers in a vector. Default: what the model is known to return (1,024 for `voyage-3`, 1,536
    for `text-embedding-3-small`). What really comes is checked against it."""

    embed_url: str | None = None
    """URL of the service, ending in `/v1`. Default: the provider's own."""

    embed_timeout_s: float = Field(default=20.0, gt=0)
    """Seconds that a provider may take for one call. After that search goes by words alone and
    says so, and a new passage gets its vector later."""

    voyage_api_key: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("HAN_SOLO_VOYAGE_API_KEY", "VOYAGE_API_KEY")
    )
    """Key for Voyage; `VOYAGE_API_KEY` is read too."""

    openai_api_key: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("HAN_SOLO_OPENAI_API_KEY", "OPENAI_API_KEY")
    )
    """Key for the service that speaks OpenAI's protocol; `OPENAI_API_KEY` is read too."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe log line that is written."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """`auto` is `console` on a terminal and `json` elsewhere. Logs go to stderr."""

    @field_validator("extensions", "transcripts", mode="before")
    @classmethod
    def _split_paths(cls, value: object) -> object:
        return tuple(filter(None, value.split(os.pathsep))) if isinstance(value, str) else value

    @field_validator(
        "bridge_allowed_hosts", "bridge_allowed_origins", "transcripts_excluded", mode="before"
    )
    @classmethod
    def _split_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("alert_urls", mode="before")
    @classmethod
    def _split_spaces(cls, value: object) -> object:
        return tuple(value.split()) if isinstance(value, str) else value

    @field_validator("guard_modes", "guard_every_s", mode="before")
    @classmethod
    def _split_pairs(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs: dict[str, str] = {}
        for part in filter(None, map(str.strip, value.split(","))):
            name, equals, chosen = (piece.strip() for piece in part.partition("="))
            if not (name and equals and chosen):
                raise ValueError(f"{part!r} is not name=value")
            if name in pairs:
                raise ValueError(f"{name} stands in it twice")
            pairs[name] = chosen
        return pairs

    @field_validator("timezone")
    @classmethod
    def _require_zone(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                zoneinfo.ZoneInfo(value)
            except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
                raise ValueError(f"{value!r} is no time zone; give a name such as UTC") from error
        return value

    @field_validator("letta_base_url")
    @classmethod
    def _strip_slash(cls, value: str | None) -> str | None:
        return _require_http(value.rstrip("/").removesuffix("/v1")) if value else None

    @field_validator("embed_url")
    @classmethod
    def _require_url(cls, value: str | None) -> str | None:
        return _require_http(value.rstrip("/")) if value else None

    @field_validator("bridge_url")
    @classmethod
    def _require_mcp(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not value.endswith("/mcp"):
            raise ValueError("must end in /mcp")
        return _require_http(value)

    @property
    def zone(self) -> zoneinfo.ZoneInfo:
        """The zone of jobs: the one set, or else the machine's."""
        return zoneinfo.ZoneInfo(self.timezone or tzlocal.get_localzone_name())

    @property
    def at(self) -> Home:
        """The home directory as an object."""
        return Home(self.home.expanduser().absolute())


def _require_http(url: str) -> str:
    """Return the URL, or say what it lacks; httpx would say so only at the first request."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must begin with http:// or https:// and name a host")
    return url
