"""Text that Postgres or Letta can not hold is refused by name and place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from han_solo.errors import UsageError
from han_solo.store.text import require_storable


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (" \n\t\u00a0", "is empty"),
        ("x" * 11, "has 11 characters; at most 10"),
        ("ab\0c", r"has a NUL character \(U\+0000\) at position 3"),
        ("a\ud800", r"has a lone surrogate \(U\+D800\) at position 2"),
        ("\udfffb", r"has a lone surrogate \(U\+DFFF\) at position 1"),
    ],
)
def test_bad_text_is_refused_with_the_reason(text, words):
    with pytest.raises(UsageError, match=f"The note {words}") as caught:
        require_storable(text, "The note", max_chars=10)
    assert "nothing was written" in caught.value.hint
    assert "\ud800" not in str(caught.value)


def test_empty_text_is_taken_where_it_means_something():
    assert require_storable("", "The note", max_chars=10, min_chars=0) == ""


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=50))
def test_all_other_text_is_returned_as_it_is(text):
    assert require_storable(f"x{text}", "The note", max_chars=51) == f"x{text}"
