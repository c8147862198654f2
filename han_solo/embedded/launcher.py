"""Starts a Letta 0.16.8 server; runs inside Letta's own environment, so only it and the stdlib.

Letta as installed lacks three things, and has one too many:

- its wheel ships no migrations, so the schema is made from its ORM when the database is empty, and
  with it the sequence without which every agent that is created is a conflict;
- it refuses MCP servers on loopback with no switch: exactly the URLs given in
  ``HAN_SOLO_ALLOW_MCP_URLS`` pass, and all others still go through its own check;
- it prints the password into its log.

A database that holds a schema is left as it is. Called by ``EmbeddedLetta`` and, with an operator's
own interpreter and environment, by ``han-solo letta serve``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import importlib.metadata
import io
import os
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

VERSION = "0.16.8"
ALLOWED_URLS = "HAN_SOLO_ALLOW_MCP_URLS"

_EXIT_REFUSED = 2
_SCHEMA_LOCK = 7_203_168  # any number, the same in every launcher: two of them make one schema
_SECRETS = ("LETTA_PG_URI", "LETTA_SERVER_PASSWORD")


class Address(NamedTuple):
    """What of a URL is compared: all that a request to it depends on."""

    scheme: str
    host: str
    port: int
    path: str


def main() -> None:
    """Check, patch, make the schema if there is none, and serve until SIGTERM."""
    options = _parse_options()
    allowed = take_allowed_urls()
    _check_version()
    _check_database_set()
    asyncio.run(_check_database())
    url_validation = importlib.import_module("letta.helpers.url_validation")
    original = url_validation.validate_mcp_server_url
    guarded = build_url_check(allowed, original)
    replace_everywhere("validate_mcp_server_url", original, guarded)
    application = _load_application()
    # Modules that Letta imported meanwhile took the name from url_validation, which is patched;
    # this finds those that had it before.
    replace_everywhere("validate_mcp_server_url", original, guarded)
    asyncio.run(_ensure_schema(embedded=options.embedded))
    if options.embedded:
        _prepare_embedded()
    _serve(application, options.host, options.port)


def take_allowed_urls() -> frozenset[Address]:
    """Read the URLs that may be registered and remove the variable, which tools would inherit."""
    urls = os.environ.pop(ALLOWED_URLS, "").split()
    addresses = {url: parse_address(url) for url in urls}
    for url, address in addresses.items():
        if address is None:
            _refuse(f"{url} can not be allowed as a bridge.", "Use http://host:port/path.")
    return frozenset(address for address in addresses.values() if address is not None)


def parse_address(url: str) -> Address | None:
    """Return what is compared; None for a URL with anything else in it, such as a query."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    plain = {"http": 80, "https": 443}
    if parts.scheme not in plain or not parts.hostname or "@" in parts.netloc:
        return None
    if parts.query or parts.fragment or "?" in url or "#" in url:
        return None
    return Address(parts.scheme, parts.hostname, port or plain[parts.scheme], parts.path)


def build_url_check(
    allowed: frozenset[Address], original: Callable[..., str]
) -> Callable[..., str]:
    """Return a check that passes the allowed addresses and asks Letta's own about all others."""

    def validate_mcp_server_url(url: str, *, resolve_hostname: bool = True) -> str:
        if url and parse_address(url) in allowed:
            return url
        return original(url, resolve_hostname=resolve_hostname)

    return validate_mcp_server_url


def replace_everywhere(name: str, old: object, new: object) -> None:
    """Replace a function in every module of Letta that holds it under that name."""
    for module in list(sys.modules.values()):
        is_lettas = getattr(module, "__name__", "").startswith("letta.")
        if is_lettas and module.__dict__.get(name) is old:
            setattr(module, name, new)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8283)
    parser.add_argument(
        "--embedded", action="store_true", help="our own server: quiet, and nothing of it calls out"
    )
    return parser.parse_args()


def _check_version() -> None:
    try:
        found = importlib.metadata.version("letta")
    except importlib.metadata.PackageNotFoundError:
        _refuse(
            f"There is no Letta in the environment of {sys.executable}.",
            f"Give the Python of an environment with letta[server]=={VERSION}.",
        )
    if found != VERSION:
        _refuse(
            f"The environment of {sys.executable} has Letta {found}, and only {VERSION} will do.",
            f"Install letta[server]=={VERSION} there; releases from 0.32 on are another product.",
        )


def _check_database_set() -> None:
    """Ask Letta, which also takes the parts one by one and from its configuration file."""
    settings = importlib.import_module("letta.settings").settings
    if not settings.letta_pg_uri_no_default:
        _refuse(
            "LETTA_PG_URI is not set; Letta needs a Postgres with pgvector.",
            "Set it as postgresql://user:password@host:port/name.",
        )


def _load_application() -> Any:
    """Import Letta's application; what it prints meanwhile is shown without the password."""
    # Letta reads this from the command line; else it writes OpenAPI files into the working
    # directory at every start.
    sys.argv = [sys.argv[0], "--no-generation"]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            module = importlib.import_module("letta.server.rest_api.app")
    finally:
        text = printed.getvalue()
        if password := os.environ.get("LETTA_SERVER_PASSWORD"):
            text = text.replace(password, "[LETTA_SERVER_PASSWORD]")
        print(text, end="", flush=True)  # noqa: T201 Letta's own output
    return module.app


async def _check_database() -> None:
    """Look into the database before the application is loaded, which takes seconds."""
    async with _open_database() as (connection, text):
        _check_foreign(await _list_tables(connection, text))


async def _ensure_schema(*, embedded: bool) -> None:
    """Make the schema in an empty database, in one transaction; touch no other.

    In our own server the address of the provider ``openai`` follows the environment: Letta keeps
    the one of the first start for good, so that a key set later would be used on the stand-in.
    """
    base = importlib.import_module("letta.orm.base").Base
    async with _open_database() as (connection, text):
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})"))
        tables = await _list_tables(connection, text)
        _check_foreign(tables)
        if tables:
            if embedded:
                models = importlib.import_module("letta.settings").model_settings
                await connection.execute(text(_ADDRESS), {"url": models.openai_api_base})
            return
        await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        await connection.run_sync(base.metadata.create_all)
        for statement in _SEQUENCE:
            await connection.execute(text(statement))


@contextlib.asynccontextmanager
async def _open_database() -> AsyncIterator[tuple[Any, Callable[[str], Any]]]:
    """Open a transaction on Letta's database; yields it, and what makes a statement of a text."""
    sqlalchemy = importlib.import_module("sqlalchemy")
    pg_uri = importlib.import_module("letta.settings").settings.letta_pg_uri
    convert = importlib.import_module("letta.database_utils").get_database_uri_for_context
    # Not Letta's own engine: its connections would belong to this short-lived event loop.
    make_engine = importlib.import_module("sqlalchemy.ext.asyncio").create_async_engine
    engine = make_engine(convert(pg_uri, "async"))
    try:
        async with engine.begin() as connection:
            yield connection, sqlalchemy.text
    except (OSError, sqlalchemy.exc.SQLAlchemyError) as error:
        said = str(getattr(error, "orig", None) or error).strip().splitlines()
        reason = said[-1] if said else type(error).__name__
        _refuse(
            f"Letta's database can not be used: {reason.rstrip('.')}.",
            "See LETTA_PG_URI; the extension vector must be there or be allowed to be made.",
        )
    finally:
        await engine.dispose()


async def _list_tables(connection: Any, text: Callable[[str], Any]) -> set[str]:
    rows = await connection.execute(
        text("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    )
    return set(rows.scalars())


_ADDRESS = (
    "UPDATE providers SET base_url = :url "
    "WHERE name = 'openai' AND organization_id IS NULL AND base_url IS DISTINCT FROM :url"
)
_SEQUENCE = (
    "CREATE SEQUENCE message_seq_id OWNED BY messages.sequence_id",
    "ALTER TABLE messages ALTER COLUMN sequence_id SET DEFAULT nextval('message_seq_id')",
)


def _check_foreign(tables: set[str]) -> None:
    if tables and not {"alembic_version", "agents"} & tables:
        _refuse(
            "The database of LETTA_PG_URI holds tables, and none of them is Letta's.",
            "Give Letta an empty database of its own.",
        )


def _prepare_embedded() -> None:
    """Keep secrets from custom tools and logs, and the start off the net."""
    for name in _SECRETS:  # read already; custom tools would inherit them
        os.environ.pop(name, None)
    with contextlib.suppress(ImportError):
        nltk: Any = importlib.import_module("nltk")
        # Each start would look for a tokenizer that nothing in Letta uses.
        nltk.download = lambda *_args, **_options: False
    # By the model's name; a name that Letta does not know is given 30,000.
    importlib.import_module("letta.constants").LLM_MAX_CONTEXT_WINDOW["rehearsal"] = 128_000
    # Else an error of the database is logged with the values, tokens of MCP servers among them.
    importlib.import_module("letta.server.db").engine.sync_engine.hide_parameters = True


def _serve(application: Any, host: str, port: int) -> None:
    settings = importlib.import_module("letta.settings").settings
    with contextlib.suppress(KeyboardInterrupt):  # raised again once the requests have ended
        importlib.import_module("uvicorn").run(
            application,
            host=host,
            port=port,
            timeout_keep_alive=settings.uvicorn_timeout_keep_alive,
            access_log=False,
        )


def _refuse(message: str, hint: str) -> NoReturn:
    print(f"error: {message}\n       {hint}", file=sys.stderr, flush=True)  # noqa: T201 its voice
    sys.exit(_EXIT_REFUSED)


if __name__ == "__main__":
    main()
