"""Instructions that demand a search before each reply are found, in whatever words; no others."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from han_solo.loader import load_registry
from han_solo.reconcile.spec import load_spec


@pytest.fixture(scope="module")
def find_demand() -> Any:
    (guard,) = [guard for guard in load_registry().guards if guard.name == "step_budget"]
    return sys.modules[guard.check.__module__].find_demand  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "Search archival memory before every message.",
        "SEARCH your memory\nbefore each reply.",
        "Before you answer: always search archival memory before you respond.",
        "Before each response, run a memory search.",
        "You must search archival memory before answering.",
        "First search the archive, before replying to anything.",
        "Search first, before you reply.",
        "Never answer without searching archival memory.",
        "Do not reply until you have consulted your memory.",
        "Consult archival memory for every message.",
        "- Be kind.\n- On every turn, query the archive.",
    ],
)
def test_a_demand_is_found(find_demand: Any, text: str) -> None:
    assert find_demand(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Never search before each reply; search when it is needed.",
        "There is no need to search before every message.",
        "Search when the answer is not in a block. Answer every message.",
        "Do not search for what your blocks say.",
        "Search before you name a date or a number.",
        "Two searches are enough for most questions.",
        "Do not answer in haste.\nSearch when the answer is not in front of you.",
        "",
    ],
)
def test_what_leaves_the_choice_is_not(find_demand: Any, text: str) -> None:
    assert find_demand(text) is None


def test_the_shipped_instructions_demand_none(find_demand: Any) -> None:
    spec = load_spec()

    assert [block.label for block in spec.blocks if find_demand(block.seed)] == []
    assert find_demand(spec.system) is None


def test_the_line_is_told(find_demand: Any) -> None:
    assert find_demand("Be kind.\n\nSearch your memory before every reply.") == 3
