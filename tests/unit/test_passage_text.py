"""What a text tells an index: chunks, names, questions, times."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from han_solo.memory.passage_text import (
    CHUNK_CHARS,
    MAX_ENTITIES,
    asks_time,
    build_indexed,
    find_entities,
    split_text,
)

AT = datetime(2023, 5, 8, tzinfo=UTC)


def index(text, **parts):
    (piece,) = split_text(text)
    return build_indexed(piece, **{"author": "", "title": "", "happened_at": AT, **parts})


@given(st.text(st.sampled_from("ab .\n!?\u3002\u00e9"), min_size=1, max_size=5_000))
def test_chunks_are_short_and_together_are_the_text(text):
    pieces = split_text(text)
    assert all(len(piece.text) <= CHUNK_CHARS for piece in pieces)
    end = 0
    for piece in pieces:
        start = piece.first_char - 1
        assert text[start : start + len(piece.text)] == piece.text
        assert not text[end:start].strip()
        end = start + len(piece.text)
    assert not text[end:].strip()


def test_a_chunk_ends_where_a_paragraph_does_or_else_a_sentence_or_a_word():
    paragraph = "One sentence here. " * 30 + "\n\n"
    assert split_text(paragraph * 4)[0].text.endswith("\n\n")
    assert split_text("One sentence here. " * 200)[0].text.endswith("here. ")
    assert split_text("word " * 500)[0].text.endswith("word ")
    assert len(split_text("x" * 3_000)[0].text) == CHUNK_CHARS


def test_the_date_and_whose_words_it_is_are_part_of_what_is_embedded():
    found = index("I went.", author="Caroline", title="A visit")
    assert found.embedded == "8 May, 2023 | A visit | Caroline: I went."
    assert found.date == "8 May, 2023"
    assert found.sha256 != index("I went.").sha256


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("How are you?", True),
        ("Why? Because.", False),
        ('"Really?"', True),
        ("\u597d\u5417\uff1f", True),
    ],
)
def test_a_text_that_ends_in_a_question_asks(text, asks):
    assert index(text).asks is asks


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("I went there yesterday.", True),
        ("It was last Friday", True),
        ("in June 2021", True),
        ("two weeks ago", True),
        ("at 10:30", True),
        ("I like green tea.", False),
        ("the lastest news", False),
    ],
)
def test_an_expression_of_time_is_seen(text, tells):
    assert index(text).tells_time is tells


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("When did she leave?", True),
        ("How long has he lived there?", True),
        ("In what year was it?", True),
        ("which month", True),
        ("What did he say when he left?", False),
        ("whenever", False),
    ],
)
def test_a_query_for_a_time_is_seen(query, asks):
    assert asks_time(query) is asks


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("We met Anna Berg in Oslo.", {"anna berg", "oslo"}),
        ("see https://example.com/a?b=1, please", {"https://example.com/a?b=1"}),
        ("write to ann@example.com.", {"ann@example.com"}),
        ("ping @scott about #memory", {"@scott", "#memory"}),
        ("open /etc/hosts or notes.md", {"/etc/hosts", "notes.md"}),
        ("since 2026-05-08 in ABC-12", {"2026-05-08", "abc-12"}),
        ("call find_it and fetchAll", {"find_it", "fetchall"}),
        ("Nothing. Here it is", set()),
        ("it is Scott's", {"scott"}),
        ("seen on 3 May, and each Sunday since", set()),
    ],
)
def test_names_are_found_by_rule(text, names):
    assert set(find_entities(text)) == names


def test_no_text_has_more_names_than_are_kept():
    assert len(find_entities(" ".join(f"a Name{n}" for n in range(1_000)))) == MAX_ENTITIES
    find_entities("A" * 200_000)
    find_entities("A-" * 100_000)
    find_entities("a.b@" * 50_000)
