"""The places of keys in TOML: what looks like a key but stands inside a value is none."""

from __future__ import annotations

from han_solo.reconcile.toml_places import Place, find_places, nearest_place

TEXT = '''\
top = 1
[a.b]
c.d = 2  # e = 3
text = """
f = 4
[g]
\\"""
""""
list = [
  "]", # h = 5
  { i = 6 },
]
"quoted key" = 'j = 7'
[[items]]
k = 8
[[items]]
k = 9
[items.sub]
l = 10
[[items.more]]
m = 11
'''


def test_keys_and_headers_have_their_places() -> None:
    places = find_places(TEXT)

    assert places[("top",)] == Place(1, 1)
    assert places[("a", "b")] == Place(2, 2)
    assert places[("a", "b", "c", "d")] == Place(3, 1)
    assert places[("a", "b", "list")] == Place(9, 1)
    assert places[("a", "b", "quoted key")] == Place(13, 1)
    assert places[("items", 0, "k")] == Place(15, 1)
    assert places[("items", 1, "k")] == Place(17, 1)
    assert places[("items", 1, "sub", "l")] == Place(19, 1)
    assert places[("items", 1, "more", 0, "m")] == Place(21, 1)


def test_what_stands_inside_a_value_is_no_key() -> None:
    names = {part for path in find_places(TEXT) for part in path}

    assert names.isdisjoint({"e", "f", "g", "h", "i", "j"})


def test_a_path_without_a_place_has_that_of_what_contains_it() -> None:
    places = find_places(TEXT)

    assert nearest_place(places, ("items", 1, "k", "deeper")) == Place(17, 1)
    assert nearest_place(places, ("nowhere",)) is None
