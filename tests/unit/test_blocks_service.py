"""A block write counts once it was read back, and is refused where it could not last."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from han_solo.blocks.service import CONFLICT_DELAYS_S, Blocks, digest
from han_solo.errors import (
    BlockRefused,
    LettaConflict,
    LettaRefused,
    LettaUnavailable,
    UsageError,
    WriteNotVerified,
)
from han_solo.letta.views import AgentView, BlockView, ToolView
from tests.unit.letta_wire import FakeClock

THREADS = BlockView(
    id="block-1", label="open_threads", value="old", limit=10, read_only=False, description="d"
)
FIXED = replace(THREADS, id="block-2", label="always_loaded_core", read_only=True)


@dataclass
class FakeLetta:
    """One agent with two blocks; ``patches`` says how the next writes go: "lands" or an error."""

    tools: Sequence[str] = ()
    patches: list[str | Exception] = field(default_factory=list)
    blocks: dict[str, BlockView] = field(
        default_factory=lambda: {block.id: block for block in (THREADS, FIXED)}
    )
    sent: list[str] = field(default_factory=list)
    hangs: bool = False

    async def fetch_agent(self, agent_id: str) -> AgentView:
        if self.hangs:
            await asyncio.Event().wait()
        tools = tuple(
            ToolView(id=name, name=name, tool_type="x", description="", json_schema={})
            for name in self.tools
        )
        return AgentView(
            id=agent_id,
            name="ren",
            agent_type="letta_v1_agent",
            system="",
            llm_config={},
            embedding=None,
            tools=tools,
            blocks=tuple(self.blocks.values()),
            tags=(),
            tool_rules=(),
            description=None,
            last_stop_reason=None,
        )

    async def fetch_block(self, block_id: str) -> BlockView:
        return self.blocks[block_id]

    async def write_block(self, block_id: str, value: str) -> BlockView:
        self.sent.append(value)
        fate = self.patches.pop(0) if self.patches else "lands"
        if fate in {"lands", "lands unheard"}:
            self.blocks[block_id] = replace(self.blocks[block_id], value=value)
        if fate == "is overwritten":
            self.blocks[block_id] = replace(self.blocks[block_id], value="another's")
        if fate == "lands unheard":
            raise LettaUnavailable("no answer in time")
        if isinstance(fate, Exception):
            raise fate
        return self.blocks[block_id]


def _blocks(letta: FakeLetta, clock: FakeClock | None = None) -> Blocks:
    return Blocks(letta, "agent-1", timeout_s=5, clock=clock or FakeClock())  # type: ignore[arg-type]


async def test_a_write_is_read_back() -> None:
    letta = FakeLetta()
    written = await _blocks(letta).write("open_threads", "new")
    assert written.changed
    assert written.block.value == "new"
    assert written.sha256 == digest("new")


async def test_writing_what_is_there_sends_nothing() -> None:
    letta = FakeLetta()
    written = await _blocks(letta).write("open_threads", "old")
    assert not written.changed
    assert letta.sent == []


async def test_blocks_are_listed_by_label() -> None:
    found = await _blocks(FakeLetta()).list()
    assert [block.label for block in found] == ["always_loaded_core", "open_threads"]


async def test_one_block_is_read() -> None:
    assert (await _blocks(FakeLetta()).read("open_threads")).value == "old"


@pytest.mark.parametrize("act", ["read", "write"])
async def test_an_unknown_label_names_the_known_ones(act: str) -> None:
    blocks = _blocks(FakeLetta())
    with pytest.raises(BlockRefused, match="no core block 'threads'") as caught:
        await (blocks.read("threads") if act == "read" else blocks.write("threads", "x"))
    assert caught.value.reason == "unknown_label"
    assert "always_loaded_core, open_threads" in str(caught.value)


async def test_a_value_over_the_limit_is_refused_with_the_numbers() -> None:
    letta = FakeLetta()
    with pytest.raises(BlockRefused, match="11 characters, 1 more than its limit of 10") as caught:
        await _blocks(letta).write("open_threads", "x" * 11)
    assert caught.value.reason == "over_limit"
    assert letta.sent == []


async def test_a_value_at_the_limit_is_written() -> None:
    assert (await _blocks(FakeLetta()).write("open_threads", "\U0001f600" * 10)).changed


async def test_a_read_only_block_is_refused() -> None:
    letta = FakeLetta()
    with pytest.raises(BlockRefused, match="read-only") as caught:
        await _blocks(letta).write("always_loaded_core", "x")
    assert caught.value.reason == "read_only"
    assert letta.sent == []


@pytest.mark.parametrize("value", ["a\0b", "a\ud800b"], ids=["nul", "surrogate"])
async def test_what_letta_would_not_keep_is_refused(value: str) -> None:
    letta = FakeLetta()
    with pytest.raises(UsageError, match="open_threads"):
        await _blocks(letta).write("open_threads", value)
    assert letta.sent == []


@pytest.mark.parametrize("builtin", ["memory_insert", "core_memory_append", "memory"])
async def test_a_write_is_refused_while_a_built_in_memory_tool_would_revert_it(
    builtin: str,
) -> None:
    letta = FakeLetta(tools=["list_notecards", builtin])
    with pytest.raises(BlockRefused, match=builtin) as caught:
        await _blocks(letta).write("open_threads", "new")
    assert caught.value.reason == "builtin_memory_tools"
    assert "sync-tools" in str(caught.value)
    assert letta.sent == []


async def test_reads_go_on_while_a_built_in_memory_tool_is_attached() -> None:
    assert (await _blocks(FakeLetta(tools=["memory_insert"])).read("open_threads")).value == "old"


async def test_another_value_in_the_read_back_is_not_verified() -> None:
    letta = FakeLetta(patches=["is overwritten"])
    with pytest.raises(WriteNotVerified) as caught:
        await _blocks(letta).write("open_threads", "new")
    assert caught.value.expected_sha256 == digest("new")
    assert caught.value.found_sha256 == digest("another's")
    assert "another's" not in str(caught.value)


async def test_a_conflict_is_tried_again() -> None:
    clock = FakeClock()
    letta = FakeLetta(patches=[LettaConflict("409"), LettaConflict("409")])
    assert (await _blocks(letta, clock).write("open_threads", "new")).changed
    assert len(letta.sent) == 3
    assert len(clock.slept_s) == 2


async def test_conflicts_are_tried_again_only_so_often() -> None:
    letta = FakeLetta(patches=[LettaConflict("409")] * 20)
    with pytest.raises(LettaConflict):
        await _blocks(letta).write("open_threads", "new")
    assert len(letta.sent) == len(CONFLICT_DELAYS_S) + 1


async def test_a_write_that_landed_unheard_counts_as_done() -> None:
    letta = FakeLetta(patches=["lands unheard"])
    assert (await _blocks(letta).write("open_threads", "new")).changed
    assert letta.sent == ["new"]


async def test_a_write_that_did_not_land_is_the_error_it_was() -> None:
    letta = FakeLetta(patches=[LettaUnavailable("no answer in time")])
    with pytest.raises(LettaUnavailable, match="no answer in time"):
        await _blocks(letta).write("open_threads", "new")
    assert letta.blocks["block-1"].value == "old"
    assert letta.sent == ["new"]


async def test_a_refusal_is_passed_on() -> None:
    letta = FakeLetta(patches=[LettaRefused("422")])
    with pytest.raises(LettaRefused):
        await _blocks(letta).write("open_threads", "new")


@pytest.mark.parametrize("act", ["read", "list", "write"])
async def test_running_out_of_time_is_an_error_with_a_sentence(act: str) -> None:
    blocks = Blocks(FakeLetta(hangs=True), "agent-1", timeout_s=0.01)
    calls = {
        "read": lambda: blocks.read("open_threads"),
        "list": blocks.list,
        "write": lambda: blocks.write("open_threads", "new"),
    }
    with pytest.raises(LettaUnavailable, match=r"longer than 0\.01 s"):
        await calls[act]()
