"""What embedders over HTTP share: batches, deadlines, a few tries, and faults in one sentence.

A rate limit or a server that stumbles is tried again, with the pause it asks for while that is
short; the rest is told at once. Nothing here writes, so trying again is always safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx
import numpy as np

from ..clock import Clock
from ..errors import EmbeddingFailed
from .model import EmbedderName, Kind, Vectors, as_vectors

TRIES: Final = 3
LONGEST_PAUSE_S: Final = 5.0
"""A provider that asks for a longer pause is reported: someone waits for the answer."""

BATCH_TEXTS: Final = 128
"""Both providers take so many texts in one call."""

BATCH_CHARS: Final = 200_000
"""Some 50,000 tokens, below the smallest limit of a call (120,000)."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the vectors come from, and what differs between providers."""

    url: str
    key: str
    kinds: dict[Kind, str] | None = None
    """The provider's words for passage and query, where it makes a difference."""
    width_field: str | None = None
    """Name of the field that asks for a width, where the provider takes one."""


class RemoteEmbedder:
    """Asks a provider; see ``model.Embedder``."""

    def __init__(
        self,
        name: EmbedderName,
        endpoint: Endpoint,
        *,
        timeout_s: float,
        clock: Clock | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.name: Final = name
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._clock = clock or Clock()
        self._http = httpx.AsyncClient(
            timeout=timeout_s,
            transport=transport,
            headers={"Authorization": f"Bearer {endpoint.key}"},
        )

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        parts = [await self._ask(batch, kind) for batch in _batches(texts)]
        return np.concatenate(parts) if parts else as_vectors([], self.name, 0)

    async def close(self) -> None:
        await self._http.aclose()

    async def _ask(self, texts: Sequence[str], kind: Kind) -> Vectors:
        body: dict[str, Any] = {"model": self.name.model, "input": list(texts)}
        if self._endpoint.kinds:
            body["input_type"] = self._endpoint.kinds[kind]
        if self._endpoint.width_field:
            body[self._endpoint.width_field] = self.name.width
        for tries_left in reversed(range(TRIES)):
            try:
                async with asyncio.timeout(self._timeout_s):
                    answer = await self._http.post(self._endpoint.url, json=body)
            except (httpx.HTTPError, TimeoutError) as error:
                if tries_left and not isinstance(error, TimeoutError | httpx.TimeoutException):
                    await self._clock.sleep(1.0)
                    continue
                raise self._away(error) from error
            pause_s = _pause(answer)
            if pause_s is None or not tries_left or pause_s > LONGEST_PAUSE_S:
                return self._read(answer, len(texts))
            await self._clock.sleep(pause_s)
        raise AssertionError("the last try returns or raises")

    def _read(self, answer: httpx.Response, count: int) -> Vectors:
        if answer.status_code != httpx.codes.OK:
            raise self._refused(answer)
        try:
            rows = sorted(answer.json()["data"], key=lambda row: int(row["index"]))
            vectors = [row["embedding"] for row in rows]
        except (ValueError, KeyError, TypeError) as error:
            raise EmbeddingFailed(
                f"{self.name.provider} answered with something else than vectors.",
                hint="See that HAN_SOLO_EMBED_URL leads to a service for embeddings.",
            ) from error
        return as_vectors(vectors, self.name, count)

    def _away(self, error: Exception) -> EmbeddingFailed:
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            why = f"did not answer within {self._timeout_s:g} s"
        else:
            why = f"is not reached ({type(error).__name__})"
        return EmbeddingFailed(
            f"{self.name.provider} {why}; no vector was made.",
            hint="It is tried again later by itself.",
            is_passing=True,
        )

    def _refused(self, answer: httpx.Response) -> EmbeddingFailed:
        code = answer.status_code
        if code == httpx.codes.TOO_MANY_REQUESTS:
            return EmbeddingFailed(
                f"{self.name.provider} limits our rate; no vector was made.",
                hint="It is tried again later by itself; a paid plan has a higher limit.",
                is_passing=True,
            )
        if code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            return EmbeddingFailed(
                f"{self.name.provider} does not accept the key (HTTP {code}).",
                hint="Set the key that the provider gave you.",
            )
        return EmbeddingFailed(
            f"{self.name.provider} refused to embed with {self.name.model} (HTTP {code}).",
            hint="See that the model's name and width are right.",
            is_passing=code >= httpx.codes.INTERNAL_SERVER_ERROR,
        )


def _pause(answer: httpx.Response) -> float | None:
    """Return how long to wait before another try, or None where one would not help."""
    if answer.status_code not in {429, 500, 502, 503, 504}:
        return None
    try:
        return max(0.0, float(answer.headers.get("retry-after", "1")))
    except ValueError:  # a date: longer than anyone here waits
        return LONGEST_PAUSE_S + 1


def _batches(texts: Sequence[str]) -> list[list[str]]:
    batches: list[list[str]] = []
    room = 0
    for text in texts:
        room -= len(text)
        if not batches or room < 0 or len(batches[-1]) == BATCH_TEXTS:
            batches.append([])
            room = BATCH_CHARS - len(text)
        batches[-1].append(text)
    return batches
