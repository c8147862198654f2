"""The registry: names once, sorted, shown by audience."""

from __future__ import annotations

import pytest

from han_solo.errors import DeclarationError
from han_solo.registry import build_registry

from . import bridge_fakes as fakes


def test_tools_are_sorted_by_name_however_they_come():
    forth, back = build_registry(fakes.SPECS), build_registry(reversed(fakes.SPECS))
    assert forth == back
    assert [spec.name for spec in forth] == sorted(spec.name for spec in fakes.SPECS)
    assert len(forth) == len(fakes.SPECS)


def test_two_tools_of_one_name_are_refused_with_both_places():
    first, second = fakes.many(1).tools[0], fakes.many(1).tools[0]
    with pytest.raises(DeclarationError) as caught:
        build_registry([first, second])
    assert str(caught.value).count(f"{fakes.__file__}:") == 2


def test_each_kind_is_shown_what_the_less_trusted_are_and_its_own():
    registry = fakes.registry()
    shown = {kind: {spec.name for spec in registry.shown_to(kind)}
             for kind in ("agent", "client", "operator")}  # fmt: skip
    assert shown["agent"] < shown["client"] < shown["operator"]
    assert shown["client"] - shown["agent"] == {"client_read"}
    assert shown["operator"] - shown["client"] == {"erase_all"}


def test_a_tool_is_found_by_name():
    assert fakes.registry().get("echo").name == "echo"
    assert fakes.registry().get("nope") is None
