"""Phrases are found however the text is laid out, and an order is told from its opposite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from han_solo.reconcile.prose import Prose, compile_phrase
from han_solo.reconcile.text_rules import TextRules

INVERTED = "before * read* * core block*"


def says(phrase: str, text: str) -> bool:
    return Prose(text).find_order(compile_phrase(phrase)) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Search archival before reading core blocks.",
        "SEARCH archival memory\nbefore reading\tyour  core blocks",
        "1. Search archival first, before you read the **core blocks**.",
        "Be kind. Search archival before you read what your core blocks say.",
        'Rule: search "archival" before reading the `core` blocks!',
    ],
)
def test_an_inverted_instruction_is_found_however_it_is_written(text: str) -> None:
    assert says(INVERTED, text)


@pytest.mark.parametrize(
    "text",
    [
        "Never search archival before reading core blocks.",
        "You do not need to search before reading core blocks.",
        "Don\u2019t search before reading core blocks.",
        "There is no need to search before reading core blocks",
        "Ask before you act; reading core blocks costs nothing.",
        "Ask before you act.\n- Read the core blocks",
        "Ask before one two three four five six reading core blocks.",
        "Read the core blocks before the bread.",
        "",
    ],
)
def test_what_forbids_it_or_says_something_else_is_not(text: str) -> None:
    assert not says(INVERTED, text)


def test_a_no_in_another_clause_turns_nothing_around() -> None:
    assert says(INVERTED, "They are never stale, so search before reading core blocks.")


@pytest.mark.parametrize(
    ("phrase", "text", "is_there"),
    [
        ("search", "research", False),
        ("search", "searches", False),
        ("search*", "Searches.", True),
        ("in every prompt. What", "They are in every\nprompt.  What they hold", True),
        ("never search for it", "read it here, never search\nfor it.", True),
        ("\u6838\u5fc3", "\u8bfb\u6838\u5fc3\u5757", True),
        ("a.b", "axb", False),
    ],
)
def test_words_are_whole_words_and_signs_are_signs(phrase: str, text: str, is_there: bool) -> None:
    assert Prose(text).has(compile_phrase(phrase)) is is_there


def test_the_line_is_the_one_in_the_text() -> None:
    text = "One.\n\n- two\nSearch before\nreading core blocks.\n"
    assert Prose(text).find_order(compile_phrase("search * core blocks")) == 4
    assert Prose(text).find_order(compile_phrase("one")) == 1


def test_rules_name_what_is_missing_and_what_is_forbidden() -> None:
    rules = TextRules(("always loaded", "keep the last"), (INVERTED,))

    assert rules.missing("They are always\nloaded.") == ("keep the last",)
    assert rules.forbidden("Search before reading core blocks.") == (INVERTED,)
    assert not rules.allow("")
    assert rules.allow("Always loaded. Keep the last step.")


@given(st.text(max_size=200), st.text(min_size=1, max_size=30).filter(lambda text: text.strip()))
def test_any_phrase_can_be_looked_for_in_any_text(text: str, phrase: str) -> None:
    Prose(text).find_order(compile_phrase(phrase))


@given(st.text(alphabet="ab .\n-*", max_size=200))
def test_a_line_is_never_outside_of_the_text(text: str) -> None:
    line = Prose(text).find_order(compile_phrase("a"))
    assert line is None or "a" in text.split("\n")[line - 1]
