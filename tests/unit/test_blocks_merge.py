"""Two edits of one text are joined where they do not meet, and never lose or invent a line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from han_solo.blocks.merge import MAX_LINES, find_base, merge

BASE = "one\ntwo\nthree\nfour"
LINES = st.lists(st.sampled_from(["a", "b", "c", "", "d\r"]), max_size=8)


def test_edits_of_different_lines_are_both_kept():
    assert merge(BASE, "ONE\ntwo\nthree\nfour", "one\ntwo\nthree\nfour\nfive") == (
        "ONE\ntwo\nthree\nfour\nfive"
    )
    assert merge(BASE, "two\nthree\nfour", "one\ntwo\nthree") == "two\nthree"


def test_two_appends_are_both_kept_ours_first():
    assert merge(BASE, f"{BASE}\nours", f"{BASE}\ntheirs") == f"{BASE}\nours\ntheirs"
    assert merge("a\n", "a\nours\n", "a\ntheirs\n") == "a\nours\ntheirs\n"


def test_the_same_edit_by_both_is_made_once():
    assert merge(BASE, f"{BASE}\nnew", f"{BASE}\nnew") == f"{BASE}\nnew"


def test_edits_of_one_line_are_not_joined():
    assert merge(BASE, BASE.replace("two", "2"), BASE.replace("two", "zwei")) is None
    assert merge(BASE, BASE.replace("two\n", ""), BASE.replace("two", "zwei")) is None


def test_an_insertion_beside_a_change_is_not_joined_blindly():
    assert merge(BASE, BASE.replace("two", "2"), BASE.replace("two", "two\nmore")) is None


@given(LINES, LINES)
def test_an_edit_by_one_side_alone_is_that_edit(base, other):
    first, second = "\n".join(base), "\n".join(other)
    assert merge(first, second, first) == second
    assert merge(first, first, second) == second
    assert merge(first, second, second) == second


@given(LINES, LINES, LINES)
def test_what_both_added_is_there_when_they_are_joined(base, ours, theirs):
    base = ["x", *base]
    joined = merge("\n".join(base), "\n".join(base + ours), "\n".join(base + theirs))
    if joined is not None:
        for line in {*ours, *theirs} - set(base):
            assert joined.split("\n").count(line) >= max(ours.count(line), theirs.count(line))


def test_the_base_is_the_version_that_was_edited():
    versions = {1: "seed", 2: BASE, 3: f"{BASE}\nours"}
    assert find_base(f"{BASE}\ntheirs", versions) == 2
    assert find_base(f"{BASE}\nours\ntheirs", versions) == 3
    assert find_base("one\ntwo\nthree", versions) == 2


def test_of_equal_bases_the_newest_counts():
    assert find_base(f"{BASE}\nx", {1: BASE, 2: "other", 3: BASE}) == 3


def test_a_text_that_keeps_little_has_no_base():
    assert find_base("all\nnew\nfour", {1: BASE}) is None
    assert find_base("anything", {1: "", 2: "  \n"}) is None


def test_texts_too_long_to_compare_have_no_base():
    long = "\n".join(f"line {n}" for n in range(MAX_LINES + 2))
    assert find_base(long, {1: "\n".join(reversed(long.split("\n")))}) is None
    assert find_base(f"{long}\nmore", {1: long}) == 1
