"""Tools and a backend in memory, for the tests of the bridge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from han_solo import BlockContext, MemoryContext, OperatorContext, tool
from han_solo.declare import spec_of
from han_solo.errors import NotFound, Unauthenticated
from han_solo.principals import KIND_SCOPES, Audience, Principal
from han_solo.registry import Registry, build_registry


class Shade(Enum):
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class Card:
    id: UUID
    created_at: datetime
    title: str
    shades: tuple[Shade, ...] = ()


@tool(effect="read")
async def echo(
    context: MemoryContext,
    text: Annotated[str, Field(max_length=20)],
    shade: Shade = Shade.LIGHT,
    times: Literal[1, 2] = 1,
) -> str:
    """Say the text again.

    Use it when a text must be heard twice.

    Args:
        text: What to say, at most 20 characters.
        shade: How bright it is.
        times: How often.

    Raises:
        NotFound: never.

    Returns:
        The caller's name, kind and agent, and the text.
    """
    principal = context.principal
    return f"{principal.name} {principal.kind} {principal.agent_id}: {text * times} {shade.value}"


@tool(effect="write")
async def make_card(context: MemoryContext, title: str) -> Card:
    """Make a card.

    Args:
        title: Its title.
    """
    return Card(UUID(int=7), datetime(2026, 1, 2, tzinfo=UTC), f"{title} ü", (Shade.DARK,))


@tool(effect="read")
async def find_missing(context: MemoryContext) -> Card:
    """Look for a card that is not there."""
    raise NotFound("There is no card 7.", hint="List them with list_cards.")


@tool(effect="read")
async def break_down(context: MemoryContext) -> str:
    """Break."""
    raise RuntimeError("postgresql://me:hunter2@db/x refused hs_abcdefgh_secretsecretsecret")


@tool(effect="write")
async def write_long(context: MemoryContext, length: int) -> str:
    """Write a long text.

    Args:
        length: Its length in characters.
    """
    return "x" * length


@tool(effect="read")
async def read_block(context: BlockContext) -> str:
    """Read a block."""
    return "block"


@tool(effect="read", audience="client")
async def client_read(context: OperatorContext) -> str:
    """Read what clients may."""
    return "client"


@tool(effect="destructive", audience="operator")
async def erase_all(context: OperatorContext) -> str:
    """Erase everything."""
    return "erased"


SPECS = tuple(
    spec_of(function)
    for function in (
        echo, make_card, find_missing, break_down, write_long, read_block, client_read, erase_all
    )
)  # fmt: skip


def registry() -> Registry:
    return build_registry(SPECS)


def many(count: int) -> Registry:
    """Return a registry of that many tools."""
    made = []
    for number in range(count):

        async def function(context: MemoryContext, word: str) -> str:
            """Return the word.

            Args:
                word: A word.
            """
            return word

        function.__name__ = f"tool_{number:03}"
        made.append(spec_of(tool(effect="read")(function)))
    return build_registry(made)


def principal(kind: Audience, scopes: Iterable[str] | None = None, **fields: Any) -> Principal:
    held = KIND_SCOPES[kind] if scopes is None else frozenset(scopes)
    return Principal(name=f"the-{kind}", kind=kind, scopes=held, **fields)


@dataclass
class FakeTokens:
    """Verifies ``good-<kind>`` tokens, and what is added."""

    principals: dict[str, Principal]
    error: Exception | None = None

    async def verify(self, token: str) -> Principal:
        if self.error:
            raise self.error
        if token not in self.principals:
            raise Unauthenticated("The token is not one of ours.", hint="han-solo tokens list.")
        return self.principals[token]


def tokens() -> FakeTokens:
    kinds: tuple[Audience, ...] = ("agent", "client", "operator")
    return FakeTokens({f"good-{kind}": principal(kind) for kind in kinds})
