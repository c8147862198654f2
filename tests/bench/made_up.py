"""Made-up conversations for measuring speed: real words, as often as words occur, in threads.

The words are the local embedder's own, so that what is measured is what happens to real text: a few
words in nearly every passage, most in very few (Zipf's law), sentences of 5 to 15 words, some 25
words a passage, twenty passages a thread.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from han_solo.embed.local_models import POTION
from han_solo.memory.passage_model import Draft

THREAD = 20
SMALL_WORDS = (
    "the a to and of in is it that for was on with as you i at be this have from or had by not but "
    "what all were we when your can said there use an each which she do how their if will up other "
    "about out many then them these so some her would make like him into time has look two more"
).split()
AUTHORS = "Anna Bjorn Chen Dalia Emil Farah Goran Hana Ines Jonas Kiri Lars".split()


class MadeUp:
    """Passages and queries of one seed."""

    def __init__(self, cache: Path, seed: int = 7) -> None:
        self._random = random.Random(seed)
        path = POTION.folder(cache) / "tokenizer.json"
        vocabulary = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
        found = sorted(word for word in vocabulary if word.isascii() and word.isalpha())
        words = [word for word in found if len(word) > 3 and word not in SMALL_WORDS]
        self._random.shuffle(words)
        self._words = [*SMALL_WORDS, *words]
        weights = (1 / (rank + 2.7) ** 1.07 for rank in range(len(self._words)))
        self._weights = list(itertools.accumulate(weights))

    def drafts(self, count: int) -> Iterator[Draft]:
        """Make so many passages."""
        began = datetime(2020, 1, 1, tzinfo=UTC)
        for number in range(count):
            yield Draft(
                text=" ".join(self._sentence() for _ in range(self._random.randint(1, 4))),
                author=self._random.choice(AUTHORS),
                thread=f"session {number // THREAD}",
                happened_at=began + timedelta(minutes=7 * number),
                origin="user_stated",
            )

    def query(self) -> str:
        """Make a question of the length that people ask."""
        asked = self._pick(self._random.randint(5, 9))
        rare = [word for word in self._pick(40) if word not in asked][-2:]
        author = self._random.choice(AUTHORS)
        return f"What did {author} say about {' '.join([*asked, *rare])}?"

    def _sentence(self) -> str:
        words = self._pick(self._random.randint(5, 15))
        return " ".join(words).capitalize() + self._random.choice("...?")

    def _pick(self, count: int) -> list[str]:
        return self._random.choices(self._words, cum_weights=self._weights, k=count)
