"""What a database URL points at, in words that can be shown: never the user's password.

A URL that asyncpg would misread (a password with a raw ``@`` or ``/`` in it) is refused here, since
the part after it would otherwise turn up as a host name in some message.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from ..errors import SettingsError

_EXAMPLE: Final = "postgresql://user:password@host:5432/name"
_NOT_SPOKEN: Final = frozenset({"channel_binding", "gssencmode", "pgbouncer", "sslcompression"})
"""Parameters of other drivers, which asyncpg would pass to Postgres as settings."""

_HOST: Final = re.compile(r"(\[[^\[\]]+\]|[^:\[\]]*)(:[0-9]{1,5})?")
"""One of the hosts, which asyncpg takes separated by commas."""


def describe_url(url: str, variable: str = "HAN_SOLO_DATABASE_URL") -> str:
    """Return ``host:port/database`` of a URL that can be used.

    Args:
        url: the database URL, password and all.
        variable: the setting it came from, for the error.

    Raises:
        SettingsError: the URL can not be used; nothing of it is repeated but its scheme.
    """
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in {"postgresql", "postgres"}:
        found = f"{scheme}://" if separator else "no scheme"
        raise SettingsError(
            f"{variable} is not a Postgres URL (it has {found}).",
            hint=f"Write it as {_EXAMPLE}.",
        )
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise SettingsError(
            f"{variable} can not be read as a URL.", hint=f"Write it as {_EXAMPLE}."
        ) from error
    if parts.netloc.count("@") > 1 or "@" in parts.path + parts.query + parts.fragment:
        raise SettingsError(
            f"{variable} holds a reserved character in its user name or password.",
            hint="Write @ as %40, / as %2F, : as %3A, ? as %3F and # as %23 there.",
        )
    query = parse_qs(parts.query)
    unknown = sorted(_NOT_SPOKEN & query.keys())
    if unknown:
        raise SettingsError(
            f"{variable} has parameters that asyncpg does not speak: {', '.join(unknown)}.",
            hint="Take them out; sslmode=verify-full is how the server's identity is checked.",
        )
    hosts = parts.netloc.rpartition("@")[2]
    if not all(_HOST.fullmatch(host) for host in hosts.split(",")):
        raise SettingsError(
            f"{variable} has a host or a port that can not be read.",
            hint=f"Write it as {_EXAMPLE}.",
        )
    host = hosts or query.get("host", ["the local server"])[0]
    database = unquote(parts.path.lstrip("/")) or query.get("dbname", [""])[0]
    if not database:
        raise SettingsError(f"{variable} names no database.", hint=f"Write it as {_EXAMPLE}.")
    return f"{host}/{database}"
