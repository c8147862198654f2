"""An agent's instructions, laid out so that a phrase is found however they are written. Pure.

Prompts and blocks are prose: a phrase may be broken over two lines, stand in a list, in bold or in
quotes, and the same words may be an order or its opposite ("never search before ..."). The rules of
the agent spec and the guard ``step_budget`` look through this.
"""

from __future__ import annotations

import bisect
import re
from typing import Final

GAP_WORDS: Final = 5
"""What a ``*`` in a phrase stands for, at most; more would join what does not belong together."""

_SENTENCE_END: Final = re.compile(r"(?<=[.!?;])[\"'*_)`]* ")
_ITEM: Final = re.compile(r"\s*(?:[-*+#>|]|\d+[.)])\s")
_CLAUSE_END: Final = re.compile(r"[,:\n]")
_NOT: Final = re.compile(r"(?<!\w)(?:never|not|no|without|avoid|stop|cannot|\w+n't)(?!\w)")
_NOT_WORDS: Final = 4
"""So many words before a phrase may turn it around: "you do not need to", "there is no need to"."""

_PUNCTUATION: Final = r"[^\w\s]*"
_BEFORE_WORD: Final = rf"{_PUNCTUATION}[ \n]{_PUNCTUATION}"
_BEFORE_GAP: Final = rf"{_PUNCTUATION} "
_GAP: Final = rf"(?:\S+ ){{0,{GAP_WORDS}}}?"
"""Its words stand in one sentence, so no line end is among them."""


class Prose:
    """A text in lower case, one blank between words and a line end after each sentence."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        parts: list[str] = []
        length = 0
        was_open = False
        for line in text.split("\n"):
            sentences = _SENTENCE_END.sub("\n", fold(line))
            goes_on = was_open and sentences and not _ITEM.match(line)
            if parts and sentences:
                parts.append(" " if goes_on else "\n")
                length += 1
            self._starts.append(length)
            if sentences:
                parts.append(sentences)
                length += len(sentences)
            was_open = bool(sentences) and not sentences.endswith((".", "!", "?", ";"))
        self.plain: Final = "".join(parts)

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Say whether the words stand there, in whatever sense."""
        return pattern.search(self.plain) is not None

    def find_order(self, pattern: re.Pattern[str]) -> int | None:
        """Return the line, from 1, of the first place that says so; one that forbids it is none."""
        for match in pattern.finditer(self.plain):
            if not self._is_forbidden(match.start()):
                return max(1, bisect.bisect_right(self._starts, match.start()))
        return None

    def _is_forbidden(self, start: int) -> bool:
        before = self.plain[max(0, start - 200) : start]
        clause = _CLAUSE_END.split(before)[-1]
        return _NOT.search(" ".join(clause.split()[-_NOT_WORDS:])) is not None


def fold(text: str) -> str:
    """Return the text without what does not matter: case, kinds of quotes, runs of blanks."""
    return " ".join(text.replace("\u2019", "'").casefold().split())


def compile_phrase(phrase: str) -> re.Pattern[str]:
    """Return what finds a phrase in ``Prose.plain``.

    Args:
        phrase: words; a ``*`` alone stands for up to five words of one sentence, one at the end of
            a word for the rest of that word. Punctuation beside words does not matter.
    """
    found, before = "", ""
    for word in fold(phrase).split():
        if word == "*":
            found += f"{_BEFORE_GAP if before == _BEFORE_WORD else before}{_GAP}"
            before = _PUNCTUATION
            continue
        stem = word.removesuffix("*")
        begins = r"(?<!\w)" if not found and _has_edge(stem[0]) else ""
        ends = r"\w*" if stem != word else r"(?!\w)" if _has_edge(stem[-1]) else ""
        found += f"{before}{begins}{re.escape(stem)}{ends}"
        before = _BEFORE_WORD
    return re.compile(found)


def _has_edge(character: str) -> bool:
    """Say whether words of this script are set apart by blanks, so that a part of one is none."""
    return character.isdigit() or character.lower() != character.upper()
