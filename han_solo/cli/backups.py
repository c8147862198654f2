"""``han-solo backups``: list them, prove them whole, restore one into an empty database."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ..connections import without_password
from ..errors import UsageError
from . import run

app = typer.Typer(
    name="backups",
    help="List backups, prove them whole, restore one. `han-solo jobs run backup` makes one.",
    no_args_is_help=True,
)

Name = Annotated[
    str | None, typer.Argument(help="A backup of `backups list`; the newest when left out.")
]


@app.command("list")
@run.command
async def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the backups that were finished, the newest first."""
    from rich.table import Table

    from ..backup.service import backups_directory, list_backups

    settings = run.settings()
    found = list_backups(settings)
    if as_json:
        rows = [{"name": each.name, "path": str(each.path), **each.manifest} for each in found]
        typer.echo(json.dumps(rows, indent=2))
        return
    if not found:
        run.out().print(
            f"There is no backup in {backups_directory(settings)} yet. "
            "`han-solo jobs run backup` makes one.",
            soft_wrap=True,
        )
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("backup", "size", "rows", "not in it"):
        table.add_column(column, overflow="fold")
    for each in found:
        missing = ", ".join(each.manifest["not_included"]) or "-"
        size = f"{each.bytes / 1_000_000:,.1f} MB"
        table.add_row(each.name, size, f"{sum(each.manifest['rows'].values()):,}", missing)
    run.out().print(table)


@app.command()
@run.command
async def verify(name: Name = None) -> None:
    """Read every file of a backup again and compare it with its manifest."""
    from ..backup.service import find_backup, verify_backup

    backup = find_backup(run.settings(), name)
    tables = await verify_backup(backup)
    run.out().print(
        f"The backup {backup.name} is whole: {len(backup.manifest['files'])} files, "
        f"{len(tables)} tables.",
        soft_wrap=True,
    )


@app.command()
@run.command
async def restore(
    into: Annotated[
        str,
        typer.Option("--into", help="URL of an empty database, postgresql://USER@HOST:PORT/NAME."),
    ],
    name: Name = None,
) -> None:
    """Load han-solo's database from a backup into an empty one; nothing else is touched.

    Then point HAN_SOLO_DATABASE_URL at it. A password in the URL can be left to PGPASSWORD.
    """
    from ..backup.dump import restore_database
    from ..backup.service import find_backup, verify_backup
    from ..store.database import Database
    from ..store.ledger import load_migrations
    from ..store.migrate import check_schema

    if not into.startswith(("postgresql://", "postgres://")):
        raise UsageError(
            "--into is no Postgres URL.", hint="Give postgresql://USER@HOST:PORT/NAME."
        )
    backup = find_backup(run.settings(), name)
    await verify_backup(backup)
    database = await Database.connect(into, pool_size=1)
    try:
        pending = await check_schema(database)
    finally:
        await database.close()
    if len(pending) < len(load_migrations()):
        raise UsageError(
            f"{without_password(into)} holds a han-solo already; a restore needs an empty one.",
            hint="Make a new database (createdb) with the extension vector, or name another.",
        )
    await restore_database(backup.path / "han_solo.dump", into)
    run.out().print(
        f"Restored {backup.name} into {without_password(into)}. "
        "Point HAN_SOLO_DATABASE_URL at it to use it.",
        soft_wrap=True,
    )
