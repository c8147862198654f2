"""The local embedder: a table with a vector for each piece of a word, averaged over the text.

It needs no network, no key and no accelerator, and embeds a short text in less than a tenth of a
millisecond. That is its kind of quality too: it knows what words are about, not how they are put
together, so search never rests on it alone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from ..errors import WeightsMissing
from . import weights
from .model import EmbedderName, Kind, Vectors, as_vectors

if TYPE_CHECKING:
    from model2vec import StaticModel

INLINE_CHARS: Final = 4_000
"""Up to so many characters it is done at once: a thread would take longer than the work."""


class LocalEmbedder:
    """potion-base-8M, read at first use; see ``model.Embedder``."""

    def __init__(self, cache: Path) -> None:
        self.name: Final = EmbedderName("local", weights.MODEL, weights.WIDTH)
        self._cache = cache
        self._model: StaticModel | None = None
        self._loading = threading.Lock()

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:  # noqa: ARG002 the protocol
        if self._model is None:
            await asyncio.to_thread(self._load)
        if sum(map(len, texts)) <= INLINE_CHARS:
            return self._embed(texts)
        return await asyncio.to_thread(self._embed, texts)

    async def close(self) -> None:
        """Nothing is open."""

    def _embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return as_vectors([], self.name, 0)
        model = self._load()
        rows = model.encode(list(texts), use_multiprocessing=False)
        return as_vectors(np.nan_to_num(rows), self.name, len(texts))

    def _load(self) -> StaticModel:
        with self._loading:
            if self._model is None:
                folder = weights.weights_folder(self._cache)
                if not weights.are_whole(folder):
                    raise WeightsMissing(
                        f"The weights of the local embedder are not in {folder}.",
                        hint="Fetch them with `han-solo embed fetch`; `han-solo up` does so too. "
                        "Until then search goes by words alone.",
                    )
                from model2vec import StaticModel  # noqa: PLC0415 - half a second, when needed

                self._model = StaticModel.from_pretrained(folder)
            return self._model
