"""Embedders: what comes back is checked to the width, and every fault is one clear sentence."""

import json

import httpx
import numpy as np
import pytest

from han_solo.embed import weights
from han_solo.embed.choice import make_embedder, wanted_embedder
from han_solo.embed.local import LocalEmbedder
from han_solo.embed.local_models import LOCAL_MODELS, POTION, WORDLLAMA
from han_solo.embed.model import EmbedderName, as_vectors, write_vector
from han_solo.embed.remote import BATCH_CHARS, BATCH_TEXTS, Endpoint, RemoteEmbedder
from han_solo.errors import EmbeddingFailed, SettingsError, WeightsMissing
from han_solo.settings import Settings

VOYAGE = EmbedderName("voyage", "voyage-3", 4)
OPENAI = EmbedderName("openai", "text-embedding-3-small", 4)


class Provider:
    """A provider's service, which answers with what it is told to, and else with vectors."""

    def __init__(self, *answers, width=4):
        self.answers = list(answers)
        self.width = width
        self.asked = []

    def __call__(self, request):
        body = json.loads(request.content)
        self.asked.append(body)
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        rows = [
            {"index": n, "embedding": [float(len(text)), 1.0, *[0.0] * (self.width - 2)]}
            for n, text in enumerate(body["input"])
        ]
        return httpx.Response(200, json={"data": rows[::-1]})  # in an order of its own


class QuickClock:
    def __init__(self):
        self.slept_s = []

    async def sleep(self, delay_s):
        self.slept_s.append(delay_s)


def embedder(provider, name=VOYAGE, **endpoint):
    clock = QuickClock()
    made = RemoteEmbedder(
        name,
        Endpoint("https://provider.test/v1/embeddings", "a key", **endpoint),
        timeout_s=5,
        clock=clock,
        transport=httpx.MockTransport(provider),
    )
    return made, clock


async def test_vectors_come_in_the_order_of_the_texts_and_of_unit_length():
    made, _ = embedder(Provider())
    found = await made.embed(["a", "bbb"], "passage")
    assert found.shape == (2, 4)
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    assert np.allclose(found[:, 0] / found[:, 1], [1, 3])


async def test_no_texts_ask_nobody():
    provider = Provider()
    made, _ = embedder(provider)
    assert (await made.embed([], "query")).shape == (0, 4)
    assert provider.asked == []


async def test_each_provider_is_asked_in_its_own_words():
    provider = Provider()
    made, _ = embedder(provider, kinds={"passage": "document", "query": "query"})
    await made.embed(["a"], "passage")
    await made.embed(["a"], "query")
    assert [body["input_type"] for body in provider.asked] == ["document", "query"]
    made, _ = embedder(provider, OPENAI, width_field="dimensions")
    await made.embed(["a"], "passage")
    assert provider.asked[-1] == {
        "model": "text-embedding-3-small",
        "input": ["a"],
        "dimensions": 4,
    }


async def test_many_texts_go_in_calls_that_the_provider_takes():
    provider = Provider()
    made, _ = embedder(provider)
    assert len(await made.embed(["x"] * (BATCH_TEXTS + 1), "passage")) == BATCH_TEXTS + 1
    assert [len(body["input"]) for body in provider.asked] == [BATCH_TEXTS, 1]
    provider.asked.clear()
    await made.embed(["y" * (BATCH_CHARS - 1)] * 2, "passage")
    assert [len(body["input"]) for body in provider.asked] == [1, 1]


async def test_a_vector_of_another_width_is_refused_and_both_widths_are_named():
    made, _ = embedder(Provider(width=3))
    with pytest.raises(EmbeddingFailed, match=r"of 3 numbers, and 4 are expected") as caught:
        await made.embed(["a"], "passage")
    assert not caught.value.is_passing
    assert "HAN_SOLO_EMBED_WIDTH" in caught.value.hint


async def test_a_rate_limit_is_waited_for_a_little_and_then_told():
    limited = [httpx.Response(429, headers={"retry-after": "2"}) for _ in range(3)]
    made, clock = embedder(Provider(*limited))
    with pytest.raises(EmbeddingFailed, match="limits our rate") as caught:
        await made.embed(["a"], "passage")
    assert caught.value.is_passing
    assert clock.slept_s == [2, 2]
    made, clock = embedder(Provider(limited[0]))
    assert (await made.embed(["a"], "passage")).shape == (1, 4)


async def test_a_long_pause_is_told_at_once():
    made, clock = embedder(Provider(httpx.Response(429, headers={"retry-after": "600"})))
    with pytest.raises(EmbeddingFailed, match="limits our rate"):
        await made.embed(["a"], "passage")
    assert clock.slept_s == []


@pytest.mark.parametrize(
    ("answer", "sentence", "is_passing"),
    [
        (httpx.ReadTimeout("slow"), "did not answer within 5 s", True),
        (httpx.Response(401), r"does not accept the key \(HTTP 401\)", False),
        (httpx.Response(400, text="no such model"), r"refused to embed .* \(HTTP 400\)", False),
        (httpx.Response(200, text="<html>"), "something else than vectors", False),
        (httpx.Response(200, json={"data": [{"index": 0}]}), "something else", False),
        (httpx.Response(200, json={"data": []}), "1 texts with 0 vectors", False),
        (
            httpx.Response(200, json={"data": [{"index": 0, "embedding": ["x"] * 4}]}),
            "something else",
            False,
        ),
        (
            httpx.Response(200, text='{"data": [{"index": 0, "embedding": [NaN, 1, 1, 1]}]}'),
            "a number in it that is none",
            False,
        ),
    ],
)
async def test_each_fault_is_one_sentence(answer, sentence, is_passing):
    made, _ = embedder(Provider(answer))
    with pytest.raises(EmbeddingFailed, match=sentence) as caught:
        await made.embed(["a"], "passage")
    assert caught.value.is_passing is is_passing
    assert "a key" not in str(caught.value)


async def test_a_lost_connection_is_tried_again():
    made, _ = embedder(Provider(httpx.ConnectError("gone"), httpx.ConnectError("gone")))
    assert (await made.embed(["a"], "passage")).shape == (1, 4)
    made, _ = embedder(Provider(*[httpx.ConnectError("gone")] * 3))
    with pytest.raises(EmbeddingFailed, match="is not reached"):
        await made.embed(["a"], "passage")


def test_a_vector_without_length_is_near_nothing():
    assert write_vector(np.zeros(3, dtype=np.float32)) is None
    assert write_vector([0.5, -0.25]) == "[0.5,-0.25]"
    assert np.allclose(
        as_vectors([[0, 0], [3, 4]], EmbedderName("local", "m", 2), 2)[1], [0.6, 0.8]
    )


async def test_without_weights_it_is_said_how_to_fetch_them(tmp_path):
    with pytest.raises(WeightsMissing, match="han-solo embed fetch"):
        await LocalEmbedder(tmp_path).embed(["a"], "query")


def test_weights_with_one_byte_changed_are_not_taken(tmp_path):
    for model in LOCAL_MODELS.values():
        for name in model.files:
            (tmp_path / name).write_bytes(b"something else")
        assert not weights.are_whole(tmp_path, model)
        assert not weights.are_whole(tmp_path / "nowhere", model)


def settings(tmp_path, **values):
    return Settings(_env_file=None, home=tmp_path, cache=tmp_path, **values)


def test_the_settings_choose_the_model_and_its_width(tmp_path):
    found = settings(tmp_path)
    assert str(wanted_embedder(found)) == "local/potion-base-8M (256 numbers)"
    assert wanted_embedder(found, "voyage") == EmbedderName("voyage", "voyage-3", 1024)
    assert wanted_embedder(found, "openai").width == 1536
    assert wanted_embedder(found, "openai", "text-embedding-3-large").width == 3072
    found = settings(tmp_path, embed_provider="openai", embed_model="mine", embed_width=64)
    assert wanted_embedder(found) == EmbedderName("openai", "mine", 64)
    assert wanted_embedder(found, "local").width == 256


def test_a_new_memory_begins_with_the_local_model_that_is_there(tmp_path):
    found = settings(tmp_path)
    WORDLLAMA.folder(tmp_path).mkdir()
    assert wanted_embedder(found).model == "wordllama-256"
    assert make_embedder(found, wanted_embedder(found)).name.model == "wordllama-256"
    POTION.folder(tmp_path).mkdir()
    assert wanted_embedder(found).model == "potion-base-8M"
    chosen = settings(tmp_path, embed_model="wordllama-256")
    assert wanted_embedder(chosen).model == "wordllama-256"


def test_what_can_not_be_is_refused(tmp_path):
    found = settings(tmp_path)
    with pytest.raises(SettingsError, match="and no other"):
        wanted_embedder(found, "local", width=64)
    with pytest.raises(SettingsError, match="can not be indexed"):
        wanted_embedder(found, "openai", width=5000)
    with pytest.raises(SettingsError, match="VOYAGE_API_KEY"):
        make_embedder(found, wanted_embedder(found, "voyage"))


async def test_a_service_of_ones_own_needs_no_key(tmp_path):
    found = settings(tmp_path, embed_provider="openai", embed_url="http://127.0.0.1:9/v1/")
    made = make_embedder(found, wanted_embedder(found))
    assert made.name.model == "text-embedding-3-small"
    await made.close()
