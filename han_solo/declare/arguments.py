"""The ``Args:`` of a tool's docstring: each entry must be about an argument that there is.

The descriptions go into the schema that a model reads, matched by name; one that is misspelt would
be lost without a word, and the argument left without a description.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_SECTION: Final = re.compile(r"(Args|Arguments|Parameters):\s*$")
_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(?:\s|$)")


def find_strange_entries(docstring: str, parameters: Collection[str]) -> tuple[str, ...]:
    """Return the entries under ``Args:`` that name no parameter, in order.

    Args:
        docstring: cleaned, as ``inspect.getdoc`` returns it.
        parameters: the arguments that a caller may give.
    """
    return tuple(name for name in list_entries(docstring) if name not in parameters)


def list_entries(docstring: str) -> tuple[str, ...]:
    """Return the names under ``Args:``; a line further in goes on with the entry above it."""
    found: list[str] = []
    indent: int | None = None
    inside = False
    for line in docstring.splitlines():
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if depth == 0:
            inside, indent = bool(_SECTION.match(line)), None
        elif inside:
            indent = depth if indent is None else indent
            entry = _ENTRY.match(line.strip()) if depth <= indent else None
            if entry:
                found.append(entry[1])
    return tuple(found)
