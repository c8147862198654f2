"""What text Letta stores as it is: everything but NUL and lone surrogates.

Letta strips a NUL without a word and answers a lone surrogate with a 500, so both are refused
before anything is sent.
"""

from __future__ import annotations

from han_solo.errors import UsageError


def require_storable(value: str, what: str) -> None:
    """Check that Letta will keep the text to the character.

    Raises:
        UsageError: names the first character that it would not keep, and where it stands.
    """
    position = value.find("\0")
    if position >= 0:
        raise UsageError(
            f"{what} has a NUL character at position {position:,}.",
            hint="Remove it: Letta drops it without a word.",
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{what} has half of a surrogate pair (U+{ord(value[error.start]):04X}) at position "
            f"{error.start:,}.",
            hint="Remove or complete it: it is no character and can not be stored.",
        ) from error
