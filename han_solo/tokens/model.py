"""What a token is: its text, its record, and what it may be given.

The text reads ``hs_<id>_<secret>``. The id finds the row, so the secret needs no index; the secret
is 32 random bytes, so one round of SHA-256 keeps it as well as a slow hash would.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from ..errors import UsageError
from ..principals import AUDIENCES, KIND_SCOPES, SCOPES, Audience

State = Literal["live", "expiring", "expired", "revoked"]

_ID_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
_ID_CHARS: Final = 8
_TEXT: Final = re.compile(r"hs_([a-z2-7]{8})_([A-Za-z0-9_-]{43})")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A token as it is kept; the secret is not in it. Times are aware UTC."""

    id: str
    name: str
    kind: Audience
    scopes: frozenset[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    @property
    def ends_at(self) -> datetime | None:
        """When it stops being good, or stopped: the first of its expiry and its revocation."""
        ends = [moment for moment in (self.expires_at, self.revoked_at) if moment is not None]
        return min(ends, default=None)

    def state(self, now: datetime) -> State:
        """Say what it is good for; ``expiring``: rotated, and in its grace until ``revoked_at``."""
        if self.revoked_at is not None and self.revoked_at <= now:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "live" if self.revoked_at is None else "expiring"


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token. ``token`` is its text, shown this once; it is kept out of ``repr``."""

    record: TokenRecord
    token: str = field(repr=False)


def new_id() -> str:
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_CHARS))


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def hash_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("ascii")).digest()


def build_text(token_id: str, secret: str) -> str:
    return f"hs_{token_id}_{secret}"


def parse_text(token: str) -> tuple[str, str] | None:
    """Return the id and the secret, or None for what can not be one of our tokens."""
    match = _TEXT.fullmatch(token)
    return (match[1], match[2]) if match else None


def check_name(name: str) -> str:
    """Return the name.

    Raises:
        UsageError: it can not be one. (It names a file too, on file systems that ignore case.)
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} can not be the name of a token.",
            hint="Use 1 to 63 lower-case letters, digits, '.', '_' or '-', and begin with a letter "
            "or a digit.",
        )
    return name


def check_kind(kind: str) -> Audience:
    """Return the kind.

    Raises:
        UsageError: there is no such kind.
    """
    for known in AUDIENCES:
        if kind == known:
            return known
    raise UsageError(f"There is no kind {kind!r}.", hint=f"Use one of {', '.join(AUDIENCES)}.")


def choose_scopes(kind: Audience, scopes: Iterable[str] | None) -> frozenset[str]:
    """Return the scopes of a new token: those asked for, or the widest set of its kind.

    Raises:
        UsageError: none, an unknown one, or one that the kind can not be given.
    """
    if scopes is None:
        return KIND_SCOPES[kind]
    asked = frozenset(scopes)
    if not asked:
        raise UsageError(
            "A token without any scope could do nothing.",
            hint="Name a scope, or none of the option for all of its kind.",
        )
    unknown = sorted(asked - SCOPES.keys())
    if unknown:
        raise UsageError(
            f"There is no scope {', '.join(unknown)}.",
            hint=f"Use some of {', '.join(SCOPES)}; `han-solo tokens scopes` explains them.",
        )
    beyond = sorted(asked - KIND_SCOPES[kind])
    if beyond:
        able = [k for k in AUDIENCES if asked <= KIND_SCOPES[k]]
        raise UsageError(
            f"A token of kind {kind} can not be given {', '.join(beyond)}.",
            hint=f"Only these kinds can: {', '.join(able)}.",
        )
    return asked
