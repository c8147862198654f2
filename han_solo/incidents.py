"""The pages of what happened, which each guard names: ``docs/incidents/``, in the wheel too.

Who calls: ``guards explain`` and the reference. A guard of an operator's own directory has its page
in ``docs/incidents/`` beside its ``guards/``, or names one of the shipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .declare import GuardSpec
from .loader import shipped_root

HEADINGS: Final = ("What happened", "Why", "How it is found", "What repairs it")
"""What a page says, in this order."""


def find_page(guard: GuardSpec) -> Path | None:
    """Return the page of a guard's incident, or None when there is none."""
    return next((path for path in _candidates(guard) if path.is_file()), None)


def shipped_pages() -> Path:
    """Return the directory of the shipped pages."""
    return _pages_of(shipped_root())


def _candidates(guard: GuardSpec) -> Iterator[Path]:
    file, _, _line = guard.source.rpartition(":")
    for folder in (_pages_of(Path(file).parent.parent), shipped_pages()):
        yield folder / f"{guard.incident}.md"


def _pages_of(root: Path) -> Path:
    return root / "docs" / "incidents"
