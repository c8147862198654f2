"""What a declaration may touch: three contexts, each adding to the weaker one.

A tool's first parameter names the weakest that serves. Services are bound per call, to the calling
principal and its agent; nothing here opens a connection. Service types are named for the type
checker only, so that importing ``han_solo`` stays light.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .declare import ContextLevel
from .principals import Principal

if TYPE_CHECKING:
    from .blocks.service import Blocks
    from .letta.gateway import LettaGateway
    from .memory.notecards import Notecards
    from .memory.passages import Passages
    from .transcripts.service import Transcripts
    from .turns.service import Turns


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """The memory in Postgres; no Letta at all, so it can not hold up the agent's own server."""

    level: ClassVar[ContextLevel] = "memory"

    principal: Principal
    notecards: Notecards
    passages: Passages
    transcripts: Transcripts


@dataclass(frozen=True, slots=True)
class BlockContext(MemoryContext):
    """Adds reads and verified writes of the agent's core blocks, on a small pool of their own."""

    level: ClassVar[ContextLevel] = "block"

    blocks: Blocks


@dataclass(frozen=True, slots=True)
class OperatorContext(BlockContext):
    """Adds Letta itself, and messages to the agent; refused in the agent's own set."""

    level: ClassVar[ContextLevel] = "operator"

    letta: LettaGateway
    turns: Turns
