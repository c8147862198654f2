"""Rules of a text in the agent spec: phrases that it must, or must not, contain. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .prose import Prose, compile_phrase


@dataclass(frozen=True, slots=True)
class TextRules:
    """Phrases; ``prose.compile_phrase`` says how they are written and compared."""

    must_contain: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()

    def missing(self, text: str) -> tuple[str, ...]:
        """Return what the text should say and does not."""
        prose = Prose(text)
        return tuple(
            phrase for phrase in self.must_contain if not prose.has(compile_phrase(phrase))
        )

    def forbidden(self, text: str) -> tuple[str, ...]:
        """Return what the text says and should not. A sentence that forbids it does not say it."""
        prose = Prose(text)
        return tuple(
            phrase
            for phrase in self.must_not_contain
            if prose.find_order(compile_phrase(phrase)) is not None
        )

    def allow(self, text: str) -> bool:
        """Say whether the text keeps the rules."""
        return not self.missing(text) and not self.forbidden(text)


NO_RULES = TextRules()
