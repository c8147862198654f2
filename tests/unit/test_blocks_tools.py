"""The core memory tools: what is stored, in pieces where it is long, and what was verified."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from han_solo import BlockContext, Principal
from han_solo.blocks.service import Blocks, digest
from han_solo.errors import BlockRefused
from han_solo.loader import load_registry
from tests.unit.test_blocks_service import THREADS, FakeLetta

MAX_REPLY_CHARS = 40_000


def _tool(name: str) -> Callable[..., Awaitable[Any]]:
    spec = load_registry().get(name)
    assert spec is not None
    return spec.function


def _context(*blocks: Any, tools: tuple[str, ...] = ()) -> BlockContext:
    letta = FakeLetta(tools=tools, blocks={block.id: block for block in blocks})
    principal = Principal("agent", "agent", frozenset(), "agent-1")
    return BlockContext(principal, notecards=None, blocks=Blocks(letta, "agent-1"))  # type: ignore[arg-type]


def _reply_chars(reply: Any) -> int:
    return len(json.dumps(asdict(reply), ensure_ascii=False))


async def test_one_block_is_shown_with_its_measures() -> None:
    reply = await _tool("read_core_memory")(_context(THREADS), "open_threads")
    (block,) = reply.blocks
    assert (block.value, block.chars, block.limit_chars) == ("old", 3, 10)
    assert block.sha256 == digest("old")
    assert block.next_offset_chars is None


async def test_all_blocks_are_shown_when_no_label_is_given() -> None:
    other = replace(THREADS, id="block-2", label="ren_voice", value="calm")
    reply = await _tool("read_core_memory")(_context(THREADS, other))
    assert [(block.label, block.value) for block in reply.blocks] == [
        ("open_threads", "old"),
        ("ren_voice", "calm"),
    ]


@pytest.mark.parametrize("text", ["x" * 100_000, '"\n' * 50_000, "\U0001f600" * 100_000])
async def test_a_long_block_comes_in_pieces_that_make_the_whole(text: str) -> None:
    context = _context(replace(THREADS, value=text, limit=200_000))
    pieces: list[str] = []
    offset: int | None = 0
    while offset is not None:
        reply = await _tool("read_core_memory")(context, "open_threads", offset)
        assert _reply_chars(reply) < MAX_REPLY_CHARS
        (block,) = reply.blocks
        pieces.append(block.value)
        offset = block.next_offset_chars
    assert "".join(pieces) == text


async def test_blocks_that_do_not_fit_together_are_named_to_be_read_one_by_one() -> None:
    blocks = [
        replace(THREADS, id=f"block-{n}", label=f"label_{n}", value="x" * 20_000) for n in range(3)
    ]
    reply = await _tool("read_core_memory")(_context(*blocks))
    assert [block.value is None for block in reply.blocks] == [False, True, True]
    assert "label_1, label_2" in reply.summary
    assert _reply_chars(reply) < MAX_REPLY_CHARS


async def test_an_offset_past_the_end_is_an_empty_piece() -> None:
    reply = await _tool("read_core_memory")(_context(THREADS), "open_threads", 99)
    assert (reply.blocks[0].value, reply.blocks[0].next_offset_chars) == ("", None)


async def test_a_write_says_what_was_read_back() -> None:
    reply = await _tool("write_core_memory")(_context(THREADS), "open_threads", "new")
    assert reply.changed
    assert "read back" in reply.done
    assert (reply.chars, reply.limit_chars, reply.sha256) == (3, 10, digest("new"))


async def test_writing_what_is_there_says_so() -> None:
    reply = await _tool("write_core_memory")(_context(THREADS), "open_threads", "old")
    assert not reply.changed
    assert "nothing was written" in reply.done


async def test_a_refusal_reaches_the_caller() -> None:
    with pytest.raises(BlockRefused, match="memory_insert"):
        await _tool("write_core_memory")(
            _context(THREADS, tools=("memory_insert",)), "open_threads", "new"
        )


@pytest.mark.parametrize("name", ["read_core_memory", "write_core_memory"])
def test_the_agent_is_shown_both(name: str) -> None:
    spec = load_registry().get(name)
    assert spec is not None
    assert spec.audience == "agent"
    assert spec.scope == f"blocks:{spec.effect}"
