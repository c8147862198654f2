"""What Letta would not keep is refused before it is sent."""

from __future__ import annotations

import pytest

from han_solo.errors import UsageError
from han_solo.letta.text import require_storable


@pytest.mark.parametrize("value", ["", "a\r\n b ", "\ufeffBOM", "\U0001f600", "e\u0301"])
def test_what_letta_keeps_is_let_through(value: str) -> None:
    require_storable(value, "The value")


def test_a_nul_is_refused_by_name_and_place() -> None:
    with pytest.raises(UsageError, match="The value has a NUL character at position 2"):
        require_storable("ab\0", "The value")


@pytest.mark.parametrize("code", [0xD83D, 0xDE00])
def test_half_a_surrogate_pair_is_refused_by_name_and_place(code: int) -> None:
    with pytest.raises(UsageError, match=rf"U\+{code:04X}\) at position 1"):
        require_storable(f"a{chr(code)}b", "The value")
