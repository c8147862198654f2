"""Named queries: one ``.sql`` file a subject under ``queries/``, loaded with aiosql.

Whoever uses a file states its queries as a ``Protocol`` beside the code, so that the type checker
knows each name, parameter and result; ``load_queries`` compares the two when the module is
imported. Parameters are ``:name`` in SQL and keywords in Python; Python never builds SQL text.

Result marks: ``^`` one row or None, ``$`` one value, ``!`` the status, none: rows to iterate with
``async for``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import aiosql

QUERIES: Final = Path(__file__).resolve().parent / "queries"

Q = TypeVar("Q")


def load_queries(
    subject: str, shape: Callable[..., Q], *, numbers: Mapping[str, int] | None = None
) -> Q:
    """Load ``queries/<subject>.sql``.

    Args:
        subject: the file's name.
        shape: the ``Protocol`` that states its queries (typed as a callable, since the type
            checker takes no protocol for a ``type``).
        numbers: whole numbers to put in place of those that the file has behind a mark, as in
            ``/*width*/256``; for what Postgres takes as a literal only, such as the width of a
            vector. The file is valid as it stands.

    Raises:
        TypeError: the file and the protocol differ, in a query's name or in its parameters.
    """
    text = (QUERIES / f"{subject}.sql").read_text(encoding="utf-8")
    for mark, number in (numbers or {}).items():
        text = re.sub(rf"/\*{re.escape(mark)}\*/[0-9]+", str(int(number)), text)
    queries = aiosql.from_str(text, "asyncpg")
    found = {name: _parameters(getattr(queries, name)) for name in names_of(queries)}
    stated = {
        name: _parameters(function)
        for name, function in vars(shape).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }
    if found != stated:
        differing = sorted(
            name for name in found.keys() | stated.keys() if found.get(name) != stated.get(name)
        )
        raise TypeError(f"{subject}.sql and {shape} differ in {', '.join(differing)}")
    return cast("Q", queries)


def names_of(queries: Any) -> tuple[str, ...]:
    """Return the queries' names, without the cursor that aiosql adds to each."""
    return tuple(sorted(name for name in queries.available_queries if not name.endswith("_cursor")))


def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    parameters = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
