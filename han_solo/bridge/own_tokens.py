"""The tokens that the bridge makes itself: the agent's, which Letta is given, and an operator's.

Each lies in a 0600 file in the home directory. One that is missing there, or is no longer good, is
made anew: its text is kept nowhere else, so there is nothing to recover.
"""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import Final

from .. import logs
from ..errors import BridgeError, NameTaken, TokenChanged, Unauthenticated
from ..home import Home
from ..principals import KIND_SCOPES, Audience
from ..tokens.model import IssuedToken
from ..tokens.service import Tokens

_log = logs.get("bridge")

OWN: Final[tuple[Audience, ...]] = ("agent", "operator")
"""The names of the files and of the tokens, which are also their kinds."""

MOST_TRIES: Final = 20
"""Replicas that start at once each take the name in turn; one is a matter of milliseconds."""

GRACE: Final = timedelta(hours=1)
"""A bridge elsewhere that shares the database may still hold the old one; a restart mends that."""


async def ensure_agent_token(tokens: Tokens, home: Home) -> str:
    """Return the agent's token; makes it, and the operator's, where there is no good one.

    Raises:
        BridgeError: the name is taken by a token of another kind.
        DatabaseUnavailable: it is not known which are good; nothing was made.
    """
    made = {kind: await _ensure(tokens, home, kind) for kind in OWN}
    return made["agent"]


async def _ensure(tokens: Tokens, home: Home, kind: Audience) -> str:
    kept = home.read_token(kind)
    if kept and await _is_good(tokens, kept, kind):
        return kept
    for tries_left in reversed(range(MOST_TRIES)):
        try:
            issued = await _issue(tokens, kind)
            break
        except (NameTaken, TokenChanged):  # another bridge that starts now was quicker
            if not tries_left:
                raise
            await asyncio.sleep(random.uniform(0.0, 0.2))  # noqa: S311 - jitter, not a secret
    path = home.write_token(kind, issued.token)
    _log.info("token.made", name=kind, path=str(path))
    return issued.token


async def _issue(tokens: Tokens, kind: Audience) -> IssuedToken:
    for live in await tokens.list():
        if live.name != kind or live.revoked_at is not None:  # in its grace: the name is free
            continue
        if live.kind != kind:
            raise BridgeError(
                f"The token {kind!r} is of kind {live.kind}; the bridge needs that name itself.",
                hint=f"Revoke it (han-solo tokens revoke {kind}) and make it under another name.",
            )
        if live.scopes == KIND_SCOPES[kind]:
            return await tokens.rotate(kind, grace=GRACE)
        await tokens.revoke(live.id)  # an older release's, narrower than what it is for now
    return await tokens.create(kind, kind)


async def _is_good(tokens: Tokens, token: str, kind: Audience) -> bool:
    """Say whether it is a live token of that kind with every scope a token of it can have."""
    try:
        found = await tokens.verify(token)
    except Unauthenticated:
        return False
    return (found.name, found.kind, found.scopes) == (kind, kind, KIND_SCOPES[kind])
