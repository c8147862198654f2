"""What an embedder is: text in, unit vectors of one width out, and errors that say what to do.

``han_solo.memory`` asks for vectors through ``Embedder`` and knows no provider. A vector belongs to
the model that made it: only vectors of one model are compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import EmbeddingFailed, WrongWidth

Provider = Literal["local", "voyage", "openai"]
Kind = Literal["passage", "query"]
Vectors = npt.NDArray[np.float32]
"""``(texts, width)``, each row of unit length, or all zeros for a text without any known word."""

MAX_WIDTH: Final = 4_000
"""pgvector's HNSW index takes no wider half-precision vectors."""

_SMALLEST_NORM: Final = 1e-12


@dataclass(frozen=True, slots=True)
class EmbedderName:
    """Which model makes the vectors, and how many numbers each has."""

    provider: Provider
    model: str
    width: int

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} ({self.width:,} numbers)"


class Embedder(Protocol):
    """Makes vectors. Implementations: ``local``, ``voyage``, ``openai``."""

    @property
    def name(self) -> EmbedderName: ...

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return a vector for each text, in order; no texts give no rows.

        Raises:
            EmbeddingFailed: none was made; says why, and whether trying again may help.
        """
        ...

    async def close(self) -> None: ...


def as_vectors(rows: object, name: EmbedderName, count: int) -> Vectors:
    """Check what a model returned, to its width, and bring it to unit length.

    Raises:
        EmbeddingFailed: another number of vectors, another width, or something else than numbers.
    """
    try:
        found = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingFailed(
            f"{name.provider} answered with something else than vectors of one width.",
            hint="See that the URL and the model that are set belong together.",
        ) from error
    if count == 0:
        return np.zeros((0, name.width), dtype=np.float32)
    if found.ndim != 2 or len(found) != count:  # noqa: PLR2004 - texts and numbers
        raise EmbeddingFailed(
            f"{name.provider} answered {count} texts with {len(found) if found.ndim else 0} "
            "vectors.",
            hint="See that the URL and the model that are set belong together.",
        )
    if found.shape[1] != name.width:
        raise WrongWidth(
            f"{name.model} returned vectors of {found.shape[1]:,} numbers, and {name.width:,} are "
            "expected.",
            width=found.shape[1],
            hint="Set HAN_SOLO_EMBED_WIDTH to what the model returns, then run `han-solo embed "
            "switch`.",
        )
    if not np.isfinite(found).all():
        raise EmbeddingFailed(
            f"{name.model} returned a vector with a number in it that is none.",
            hint="Try again; if it stays so, choose another model.",
        )
    norms = np.linalg.norm(found, axis=1, keepdims=True)
    unit: Vectors = found / np.maximum(norms, _SMALLEST_NORM)
    return unit


def write_vector(vector: Sequence[float] | npt.NDArray[np.float32]) -> str | None:
    """Write a vector as pgvector reads it; None for one without length, which is near nothing."""
    numbers = np.asarray(vector, dtype=np.float32)
    if math.isclose(float(np.abs(numbers).sum()), 0.0, abs_tol=1e-9):
        return None
    return "[" + ",".join(map("{:.5g}".format, numbers.tolist())) + "]"
