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
from .local_models import POTION, LocalModel
from .model import EmbedderName, Kind, Vectors, as_vectors
from .weights import are_whole

if TYPE_CHECKING:
    from model2vec import StaticModel

INLINE_CHARS: Final = 4_000
"""Up to so many characters it is done at once: a thread would take longer than the work."""


class LocalEmbedder:
    """A local model, read at first use; see ``model.Embedder``."""

    def __init__(self, cache: Path, local: LocalModel = POTION) -> None:
        self.name: Final = EmbedderName("local", local.name, local.width)
        self._local = local
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
                folder = self._local.folder(self._cache)
                if not are_whole(folder, self._local):
                    raise WeightsMissing(
                        f"The weights of the local embedder are not in {folder}.",
                        hint=f"Fetch them with `han-solo embed fetch {self._local.name}`. Until "
                        "then search goes by words alone.",
                    )
                self._model = _read(self._local, folder)
            return self._model


def _read(local: LocalModel, folder: Path) -> StaticModel:
    from model2vec import StaticModel  # noqa: PLC0415 - half a second, when needed

    if "config.json" in local.files:
        return StaticModel.from_pretrained(folder)
    from safetensors.numpy import load_file  # noqa: PLC0415 - as above
    from tokenizers import Tokenizer  # noqa: PLC0415 - as above

    (table,) = load_file(folder / local.table).values()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return StaticModel(table.astype(np.float32), tokenizer)
