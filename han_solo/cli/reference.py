"""``han-solo reference``: write the reference pages from what they describe, or check them.

A page that is generated can not drift unseen: ``--check``, which the tests run, fails when a file
differs from what would be written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .run import EXIT_DRIFT, command, err, out


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reference", hidden=True)(reference)  # for developers: it writes in the checkout


@command
async def reference(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; end with 3 when a page is stale.")
    ] = False,
) -> int:
    """Write docs/reference/ from the declarations and settings."""
    from ..errors import UsageError
    from ..loader import shipped_root

    folder = shipped_root() / "docs" / "reference"
    if not folder.parent.is_dir():
        raise UsageError(
            "The reference pages are written in a checkout, and this is an installed han-solo.",
            hint="Run it from a clone: .venv/bin/han-solo reference.",
        )
    stale = find_stale(folder)
    if check:
        for path in stale:
            err().print(f"{path} is stale: run `han-solo reference`.", markup=False)
        return EXIT_DRIFT if stale else 0
    pages = build_pages()
    folder.mkdir(exist_ok=True)
    for path in stale:
        path.write_text(pages[path.name], encoding="utf-8")
        out().print(f"{path} was written.", markup=False)
    return 0


def build_pages() -> dict[str, str]:
    """Build every page, by file name."""
    from ..loader import load_registry
    from . import (
        reference_guards,
        reference_reasoning,
        reference_settings,
        reference_spec,
        reference_tools,
    )

    registry = load_registry()
    return {
        "agent-spec.md": reference_spec.build_page(),
        "guards.md": reference_guards.build_page(registry),
        "reasoning.md": reference_reasoning.build_page(),
        "settings.md": reference_settings.build_page(),
        "tools.md": reference_tools.build_page(registry),
    }


def find_stale(folder: Path) -> list[Path]:
    """Return the pages in ``folder`` that are missing or differ from what would be written."""
    return [
        folder / name
        for name, text in build_pages().items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]
