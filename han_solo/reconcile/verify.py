"""The error of a step whose effect can not be read back."""

from __future__ import annotations

import hashlib

from ..errors import WriteNotVerified
from .plan import Step, kind_of, target_of


def not_verified(step: Step, expected: str, found: str) -> WriteNotVerified:
    """Return the error of a step."""
    return differs(f"{kind_of(step).replace('_', ' ')} {target_of(step)}", expected, found)


def differs(what: str, expected: str, found: str) -> WriteNotVerified:
    """Return the error; what was expected and found go into it as hashes and, if short, words."""
    return WriteNotVerified(
        f"Letta accepted {what}, but reading back shows otherwise "
        f"(expected: {_short(expected)}; found: {_short(found)}).",
        expected_sha256=_digest(expected),
        found_sha256=_digest(found),
        hint="Someone else may be changing the agent: run again.",
    )


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{len(text):,} characters"  # noqa: PLR2004 - one line


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
