"""Known shapes of secrets, taken out before anything is stored.

Each shape is searched for only in a text that holds what the shape begins with: most hold none of
them. What is taken out leaves a mark that says what it was.
"""

from __future__ import annotations

import re
from typing import Final

from ahocorasick_rs import BytesAhoCorasick

_VALUE: Final = r"(?:\\?\"(?!\$)[^\"\\\n]{8,}\\?\"|'(?!\$)[^'\n]{8,}'|[^\s\"'\\$<>(){}\[\]]{8,})"
"""What an environment is given, in quotes or not; one that names another variable is no secret."""

_SHAPES: Final = (
    (
        "private_key",
        "-----BEGIN",
        r"(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z))",
    ),
    ("anthropic_key", "sk-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    ("openai_key", "sk-", r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,}"),
    ("github_token", "ghp_", r"\bghp_[A-Za-z0-9]{30,}"),
    ("github_token", "gho_", r"\bgho_[A-Za-z0-9]{30,}"),
    ("github_token", "ghs_", r"\bghs_[A-Za-z0-9]{30,}"),
    ("github_token", "ghu_", r"\bghu_[A-Za-z0-9]{30,}"),
    ("github_token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{40,}"),
    ("gitlab_token", "glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("aws_key", "AKIA", r"\bAKIA[A-Z0-9]{16}\b"),
    ("aws_key", "ASIA", r"\bASIA[A-Z0-9]{16}\b"),
    ("google_key", "AIza", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("slack_token", "xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("stripe_key", "k_live_", r"\b[rs]k_live_[A-Za-z0-9]{16,}"),
    ("stripe_key", "k_test_", r"\b[rs]k_test_[A-Za-z0-9]{16,}"),
    ("voyage_key", "pa-", r"\bpa-[A-Za-z0-9_-]{40,}"),
    ("huggingface_token", "hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    ("han_solo_token", "hs_", r"\bhs_[a-z2-7]{8}_[A-Za-z0-9_-]{40,}"),
    ("jwt", "eyJ", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("bearer", "earer ", r"(?<=earer )[A-Za-z0-9._~+/=-]{16,}"),
    ("assigned_secret", "_KEY=", rf"(?<=_KEY=){_VALUE}"),
    ("assigned_secret", "_TOKEN=", rf"(?<=_TOKEN=){_VALUE}"),
    ("assigned_secret", "_SECRET=", rf"(?<=_SECRET=){_VALUE}"),
    ("assigned_secret", "PASSWORD=", rf"(?<=PASSWORD=){_VALUE}"),
    ("password_in_url", "://", r"(?<=://)[^\s:/@\"']{1,64}:[^\s/@\"']{1,128}(?=@[\w.-])"),
)
"""Name, what it begins with, and its shape."""

Shape = tuple[str, re.Pattern[str], str]

SHAPES: Final[tuple[Shape, ...]] = tuple(
    (start, re.compile(shape), f"[redacted: {name}]") for name, start, shape in _SHAPES
)

_ESCAPED: Final = re.compile(rb"\\(?:/|u00[2-7])")
"""A character of a start, written as an escape: then the bytes do not show what the text holds."""

_COMMON: Final = ("://", "earer ")
"""In nearly every transcript, so each text is looked through; the others are sought together."""

_RARE: Final = tuple(dict.fromkeys(start for start, _, _ in SHAPES if start not in _COMMON))
_FINDER: Final = BytesAhoCorasick([start.encode() for start in _RARE])


def find_shapes(data: bytes) -> tuple[Shape, ...]:
    """Return the shapes that the texts of a piece of a file may hold; most hold a few at most."""
    if _ESCAPED.search(data):
        return SHAPES
    found = {_RARE[index] for index, _, _ in _FINDER.find_matches_as_indexes(data)}
    found.update(_COMMON)
    return tuple(shape for shape in SHAPES if shape[0] in found)


def redact(text: str, shapes: tuple[Shape, ...] = SHAPES) -> tuple[str, int]:
    """Return the text without secrets of known shapes, and how many there were."""
    count = 0
    for start, shape, mark in shapes:
        if start in text:
            text, found = shape.subn(mark, text)
            count += found
    return text, count


def redact_bytes(data: bytes) -> bytes:
    """Do the same with bytes of no known encoding; those around a secret stay as they are."""
    return redact(data.decode("latin-1"))[0].encode("latin-1")
