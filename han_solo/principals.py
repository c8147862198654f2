"""Who calls: principals, their kinds, and the scopes that say what each may do.

A token (``han_solo.tokens``) names a principal; the bridge verifies it and hands the principal to
whatever is called. Scopes read ``<area>:<effect>``. A kind has the widest set a token of it can be
given; a token may carry less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from .errors import Forbidden

Audience = Literal["agent", "client", "operator"]
Effect = Literal["read", "write", "destructive"]

AUDIENCES: Final[tuple[Audience, ...]] = get_args(Audience)
"""In order of trust: what is shown to the agent is shown to clients and operators too."""

MEMORY_READ: Final = "memory:read"
MEMORY_WRITE: Final = "memory:write"
BLOCKS_READ: Final = "blocks:read"
BLOCKS_WRITE: Final = "blocks:write"
TRANSCRIPTS_READ: Final = "transcripts:read"
OPERATOR_READ: Final = "operator:read"
OPERATOR_WRITE: Final = "operator:write"
ADMIN: Final = "admin"

SCOPES: Final[dict[str, str]] = {
    MEMORY_READ: "read notecards, passages, sessions and facts",
    MEMORY_WRITE: "write them",
    BLOCKS_READ: "read the agent's core blocks",
    BLOCKS_WRITE: "write the core blocks that the agent spec lets this kind of caller write",
    TRANSCRIPTS_READ: "read what was said in Claude Code sessions",
    OPERATOR_READ: "read what only the operator is shown, such as plans and findings",
    OPERATOR_WRITE: "message the agent, and destructive tools",
    ADMIN: "the admin routes: sync the tools, read the agent's state",
}

KIND_SCOPES: Final[dict[Audience, frozenset[str]]] = {
    # The narrowest: it can not sync, erase, prune, switch a model or message itself.
    "agent": frozenset({MEMORY_READ, MEMORY_WRITE, BLOCKS_READ, BLOCKS_WRITE, TRANSCRIPTS_READ}),
    "client": frozenset(
        {MEMORY_READ, MEMORY_WRITE, BLOCKS_READ, BLOCKS_WRITE, TRANSCRIPTS_READ, OPERATOR_READ}
    ),
    "operator": frozenset(SCOPES),
}


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller.

    ``agent_id`` is Letta's id of the agent on whose behalf the call is made; it comes from the
    ``x-agent-id`` header and is believed only with a token of kind ``agent``.
    """

    name: str
    kind: Audience
    scopes: frozenset[str]
    agent_id: str | None = None

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    def require(self, scope: str) -> None:
        """Raise ``Forbidden`` unless this principal holds the scope."""
        if not self.may(scope):
            raise Forbidden(
                f"The token {self.name!r} does not have the scope {scope}.",
                hint="The operator can make one that has it: han-solo tokens create NAME --kind "
                "operator (han-solo tokens scopes tells which kind may have which).",
            )


def is_shown(audience: Audience, kind: Audience) -> bool:
    """Say whether what is declared for ``audience`` is shown to a principal of ``kind``."""
    return AUDIENCES.index(audience) <= AUDIENCES.index(kind)
