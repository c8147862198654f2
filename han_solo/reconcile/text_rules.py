"""Rules of a text in the agent spec: phrases that it must, or must not, contain. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class TextRules:
    """Phrases, compared without regard to case and to how lines are broken."""

    must_contain: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()

    def missing(self, text: str) -> tuple[str, ...]:
        """Return what the text should say and does not."""
        plain = _fold(text)
        return tuple(phrase for phrase in self.must_contain if _fold(phrase) not in plain)

    def forbidden(self, text: str) -> tuple[str, ...]:
        """Return what the text says and should not."""
        plain = _fold(text)
        return tuple(phrase for phrase in self.must_not_contain if _fold(phrase) in plain)

    def allow(self, text: str) -> bool:
        """Say whether the text keeps the rules."""
        return not self.missing(text) and not self.forbidden(text)


NO_RULES = TextRules()


def _fold(text: str) -> str:
    return _SPACES.sub(" ", text).strip().casefold()
