"""``han-solo tokens``: who may call the bridge.

A new token is shown once. With ``--quiet``, or when stdout is not a terminal, it is the only thing
on stdout, so that it can be written straight into a file.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ..errors import Unauthenticated, UsageError
from ..home import Home
from ..principals import AUDIENCES, KIND_SCOPES, SCOPES
from . import run
from .services import open_database

if TYPE_CHECKING:
    from ..tokens.model import IssuedToken, TokenRecord
    from ..tokens.service import Tokens

app = typer.Typer(
    name="tokens", help="Make, list, rotate and revoke the bridge's tokens.", no_args_is_help=True
)

AGENT: Final = "agent"
_OWN: Final = {
    AGENT: "Letta calls the bridge with this token: without it the agent has no tools.",
    "operator": "This is the installation's own token: without it nobody here can administer the "
    "bridge.",
}
"""The tokens that the bridge makes for itself, and what would be lost with each."""

OWN_GRACE: Final = "1h"
"""The bridge and Letta hold the old one until the next sync."""

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN: Final = re.compile(r"([1-9][0-9]{0,4})([mhdw])")

Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print the token alone, without a word around it.")
]


@app.command()
@run.command
async def create(
    name: Annotated[str, typer.Argument(help="Lower-case name, such as claude-code.")],
    kind: Annotated[
        str, typer.Option(help=f"How far the caller is trusted: {', '.join(AUDIENCES)}.")
    ],
    *,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="What it may do; repeat it. Default: all that its kind may."),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(help="30m, 12h, 90d, 4w, or a date such as 2030-01-31. Default: never."),
    ] = None,
    write: Annotated[
        bool,
        typer.Option("--write", help="Put it into a 0600 file, tokens/NAME in the home directory."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Make a token and show it, this once, or write it into a file."""
    from ..tokens.model import check_kind
    from ..tokens.service import Tokens

    settings = run.settings()
    expires_at = parse_expiry(expires, datetime.now(UTC)) if expires else None
    async with open_database(settings) as db:
        issued = await Tokens(db).create(name, check_kind(kind), scope or None, expires_at)
    if write:
        settings.at.create()
        path = settings.at.write_token(issued.record.name, issued.token)
        run.err().print(f"Token {issued.record.name} ({issued.record.kind}) was made; it is in")
        typer.echo(str(path))
        return
    _show_issued(issued, "was made", quiet=quiet)


@app.command()
@run.command
async def rotate(
    name: Annotated[str, typer.Argument(help="The token to replace.")],
    grace: Annotated[
        str | None,
        typer.Option(help="How long the old one is still good, such as 10m; at most 24h."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Replace a token by a new one of the same name, kind and scopes; the old one dies.

    One that lies in the home directory is replaced there, and the old one stays good for an hour.
    """
    from ..tokens.service import Tokens

    settings = run.settings()
    async with open_database(settings) as db:
        tokens = Tokens(db)
        in_file = await _lies_in_home(tokens, settings.at, name)
        grace = grace or (OWN_GRACE if in_file else None)
        issued = await tokens.rotate(name, grace=parse_span(grace) if grace else timedelta())
    if in_file:
        path = settings.at.write_token(name, issued.token)
        run.err().print(f"Token {name} was replaced in {path};", soft_wrap=True)
        run.err().print(f"the old one is good for another {grace}.")
        if name == AGENT:
            run.err().print("Now give it to Letta: han-solo sync-tools --yes")
        return
    old = f"the old one is good for another {grace}" if grace else "the old one is dead"
    _show_issued(issued, f"was replaced; {old}", quiet=quiet)


@app.command()
@run.command
async def revoke(
    name: Annotated[str, typer.Argument(help="The token's name, or its id.")],
) -> None:
    """End a token at once, an old one in its grace too."""
    from ..tokens.service import Tokens

    settings = run.settings()
    async with open_database(settings) as db:
        tokens = Tokens(db)
        await _refuse_own(tokens, settings.at, name)
        revoked = await tokens.revoke(name)
    for record in revoked:
        run.out().print(f"Token {record.name} ({record.id}) is revoked.")


@app.command("list")
@run.command
async def list_(
    show_all: Annotated[bool, typer.Option("--all", help="Revoked and expired ones too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the tokens. The secrets are not kept, so they can not be shown."""
    from ..tokens.service import Tokens

    async with open_database(run.settings()) as db:
        records = await Tokens(db).list(include_revoked=show_all)
    now = datetime.now(UTC)
    if as_json:
        print(json.dumps([_as_dict(record, now) for record in records], indent=2))
    elif not records:
        run.out().print("No tokens. Make one: han-solo tokens create NAME --kind client")
    else:
        _show_table(records, now)


@app.command()
def scopes() -> None:
    """Explain the scopes, and which kinds can be given them."""
    from rich.table import Table

    table = Table("scope", "may", *AUDIENCES, box=None)
    for scope, meaning in SCOPES.items():
        given = ("yes" if scope in KIND_SCOPES[kind] else "" for kind in AUDIENCES)
        table.add_row(scope, meaning, *given)
    run.out().print(table)


def parse_span(text: str) -> timedelta:
    """Read a span such as ``90d``.

    Raises:
        UsageError: it is not one.
    """
    match = _SPAN.fullmatch(text.strip())
    if not match:
        raise UsageError(
            f"{text!r} is not a span of time.",
            hint="Write a number and m, h, d or w, such as 90d.",
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def parse_expiry(text: str, now: datetime) -> datetime:
    """Read a span from now, or an ISO date (its midnight) or time, UTC unless it says otherwise.

    Raises:
        UsageError: it is neither, or lies beyond what a calendar holds.
    """
    if _SPAN.fullmatch(text.strip()):
        return now + parse_span(text)
    try:
        found = datetime.fromisoformat(text.strip())
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{text!r} is neither a span nor a date.",
            hint="Write 30m, 12h, 90d, 4w, or a date such as 2030-01-31.",
        ) from error


def _show_issued(issued: IssuedToken, what: str, *, quiet: bool) -> None:
    """Put the token on stdout; what is said about it goes to stderr."""
    record = issued.record
    alone = quiet or not sys.stdout.isatty()
    if not quiet:
        ends = f", until {_minute(record.expires_at)}" if record.expires_at else ""
        words = run.err()
        words.print(f"Token {record.name} ({record.kind}{ends}) {what}.")
        words.print(f"It may: {', '.join(sorted(record.scopes))}.", soft_wrap=True)
        if not alone:
            words.print("This is the only time it is shown:\n")
    print(issued.token)


async def _refuse_own(tokens: Tokens, home: Home, name_or_id: str) -> None:
    """Refuse to revoke what the installation itself works with, named or given by its id."""
    from ..tokens.model import parse_text

    for own, loss in _OWN.items():
        kept = parse_text(home.read_token(own) or "")
        if kept and name_or_id in {own, kept[0]} and await _lies_in_home(tokens, home, own):
            raise UsageError(
                loss,
                hint=f"Replace it instead: han-solo tokens rotate {own}. The old one can then be "
                "revoked by its id.",
            )


async def _lies_in_home(tokens: Tokens, home: Home, name: str) -> bool:
    """Say whether the file of that name in the home directory holds the live token."""
    kept = home.read_token(name)
    if kept is None:
        return False
    try:
        return (await tokens.verify(kept)).name == name
    except Unauthenticated:
        return False


def _show_table(records: tuple[TokenRecord, ...], now: datetime) -> None:
    from rich.table import Table

    table = Table("name", "kind", "state", "last used", "good until", "scopes", "id", box=None)
    for record in records:
        whole = record.scopes == KIND_SCOPES[record.kind]
        table.add_row(
            record.name,
            record.kind,
            record.state(now),
            _minute(record.last_used_at) or "never",
            _minute(record.ends_at) or "no end",
            "all of its kind" if whole else ", ".join(sorted(record.scopes)),
            record.id,
        )
    run.out().print(table)


def _as_dict(record: TokenRecord, now: datetime) -> dict[str, object]:
    times = {
        key: moment.isoformat() if (moment := getattr(record, key)) else None
        for key in ("created_at", "expires_at", "revoked_at", "last_used_at")
    }
    return {
        "id": record.id,
        "name": record.name,
        "kind": record.kind,
        "state": record.state(now),
        "scopes": sorted(record.scopes),
        **times,
    }


def _minute(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else ""
