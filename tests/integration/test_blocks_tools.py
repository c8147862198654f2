"""The block tools: what is stored, in pieces where it is long, and what was verified."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from han_solo import BlockContext, Principal
from han_solo.blocks.model import Author, digest
from han_solo.declare import LETTA_BUILTINS
from han_solo.errors import BlockRefused, UsageError
from han_solo.loader import load_registry
from tests.integration.blocks_fixtures import THREADS, open_lab, rights

MAX_REPLY_CHARS = 40_000
AGENTS = (
    "read_core_memory write_core_memory write_own_block block_append block_replace "
    "list_block_versions read_block_version restore_block_version"
).split()
CLIENTS = "core_memory core_memory_append core_memory_replace".split()


class Tools:
    """The tools by name, bound to a lab's blocks."""

    def __init__(self, lab, author=None, **options):
        author = author or Author("agent", "agent")
        principal = Principal("agent", "agent", frozenset(), "agent-1")
        self.blocks = lab.blocks(author, **options)
        self._context = BlockContext(
            principal, notecards=None, passages=None, transcripts=None, blocks=self.blocks
        )

    def __getattr__(self, name):
        spec = load_registry().get(name)
        assert spec is not None, name

        async def call(*arguments, **named):
            reply = await spec.function(self._context, *arguments, **named)
            assert len(json.dumps(asdict(reply), ensure_ascii=False)) < MAX_REPLY_CHARS
            return reply

        return call


@pytest.fixture
async def lab(database_url):
    async with open_lab(database_url) as lab:
        yield lab


@pytest.fixture
def tools(lab):
    return Tools(lab)


def hold(lab, value, **fields):
    lab.letta.blocks["block-1"] = replace(THREADS, value=value, **{"limit": 200_000, **fields})


async def test_one_block_is_shown_with_its_measures(lab, tools):
    await lab.write("one")
    (block,) = (await tools.read_core_memory("threads")).blocks
    assert (block.value, block.chars, block.limit_chars, block.version) == ("one", 3, 1000, 2)
    assert (block.sha256, block.writers) == (digest("one"), ("agent", "operator"))
    assert block.next_offset_chars is None


async def test_all_blocks_are_shown_when_no_label_is_given(tools):
    reply = await tools.read_core_memory()
    assert [(block.label, block.value) for block in reply.blocks] == [
        ("fixed", "old"),
        ("threads", "old"),
    ]


@pytest.mark.parametrize("text", ["x" * 100_000, '"\n' * 50_000, "\U0001f600" * 100_000])
async def test_a_long_block_and_a_long_version_come_in_pieces_that_make_the_whole(lab, tools, text):
    hold(lab, text)
    await tools.blocks.inspect()
    for read in (
        lambda offset: tools.read_core_memory("threads", offset),
        lambda offset: tools.read_block_version("threads", 1, offset),
    ):
        pieces, offset = [], 0
        while offset is not None:
            reply = await read(offset)
            part = reply.blocks[0] if hasattr(reply, "blocks") else reply
            pieces.append(part.value)
            offset = part.next_offset_chars
        assert "".join(pieces) == text


async def test_blocks_that_do_not_fit_together_are_named_to_be_read_one_by_one(lab, tools):
    lab.letta.blocks = {
        f"block-{n}": replace(THREADS, id=f"block-{n}", label=f"label_{n}", value="x" * 20_000)
        for n in range(3)
    }
    reply = await tools.read_core_memory()
    assert [block.value is None for block in reply.blocks] == [False, True, True]
    assert "label_1, label_2" in reply.summary


async def test_an_offset_past_the_end_is_an_empty_piece(tools):
    (block,) = (await tools.read_core_memory("threads", 99)).blocks
    assert (block.value, block.next_offset_chars) == ("", None)


async def test_a_write_says_version_hash_and_room(tools):
    reply = await tools.write_core_memory("threads", "new", "because")
    assert reply.done == (
        "Block threads was written and read back: version 2, 3 of 1,000 characters."
    )
    assert (reply.changed, reply.version, reply.chars, reply.limit_chars) == (True, 2, 3, 1000)
    assert reply.sha256 == digest("new")
    assert reply.notes == ("Every version is kept from here on; what it holds now is version 1.",)
    (newest, _) = (await tools.list_block_versions("threads")).versions
    assert (newest.reason, newest.author, newest.author_kind) == ("because", "agent", "agent")


async def test_writing_what_is_there_says_so(tools):
    reply = await tools.write_core_memory("threads", "old")
    assert not reply.changed
    assert "nothing was written" in reply.done


async def test_what_was_found_on_the_way_is_said(lab, tools):
    await lab.write("one", "two")
    lab.letta.edit("one")
    reply = await tools.block_append("threads", "three")
    assert lab.letta.value == "two\nthree"
    assert reply.notes == (
        "Letta had gone back to version 2; version 3 was put back, as version 4.",
    )


async def test_a_line_is_added_and_a_passage_replaced(lab, tools):
    assert (await tools.block_append("threads", "new")).version == 2
    assert (await tools.block_replace("threads", "old", "first")).version == 3
    assert lab.letta.value == "first\nnew"
    assert (await tools.block_replace("threads", "first\n", "")).chars == 3


async def test_the_agents_own_blocks_are_those_it_is_a_writer_of(lab):
    spec = rights(threads=("operator", "agent"), fixed=("operator",))
    operators = Tools(lab, Author("operator", "scott"), rights=spec)
    assert (await operators.write_own_block("threads", "mine")).changed
    with pytest.raises(BlockRefused, match="written by operator only") as caught:
        await operators.write_own_block("fixed", "mine")
    assert caught.value.reason == "not_a_writer"


async def test_versions_are_listed_read_and_restored(lab, tools):
    await lab.write("one", "two")
    reply = await tools.list_block_versions("threads", 2)
    assert [version.version for version in reply.versions] == [3, 2]
    assert reply.next_before == 2
    rest = await tools.list_block_versions("threads", before=2)
    assert ([version.version for version in rest.versions], rest.next_before) == ([1], None)
    assert (await tools.read_block_version("threads", 2)).value == "one"
    restored = await tools.restore_block_version("threads", 2, "it was right")
    assert (restored.version, lab.letta.value) == (4, "one")
    newest = (await tools.list_block_versions("threads", 1)).versions[0]
    assert (newest.origin, newest.source_version) == ("restored", 2)


async def test_a_long_history_comes_in_pages(lab, tools):
    for number in range(60):
        await lab.blocks().write("threads", f"text {number}", reason="r" * 500)
    seen, before = [], None
    while True:
        page = await tools.list_block_versions("threads", 100, before)
        seen += [version.version for version in page.versions]
        before = page.next_before
        if before is None:
            break
    assert seen == list(range(61, 0, -1))


@pytest.mark.parametrize("limit", [0, 101])
async def test_a_limit_out_of_range_is_refused(tools, limit):
    with pytest.raises(UsageError, match="Use 1 to 100"):
        await tools.list_block_versions("threads", limit)


async def test_clients_have_one_tool_with_actions(lab):
    spec = rights(threads=("client",), fixed=("operator",))
    tools = Tools(lab, Author("client", "claude"), rights=spec)
    assert (await tools.core_memory("write", "threads", "one")).version == 2
    assert (await tools.core_memory("append", "threads", "two")).version == 3
    assert (await tools.core_memory("replace", "threads", "ONE", old_text="one")).version == 4
    assert (await tools.core_memory("read", "threads")).blocks[0].value == "ONE\ntwo"
    assert len((await tools.core_memory("read")).blocks) == 2
    listed = await tools.core_memory("list")
    assert [(block.value, block.chars) for block in listed.blocks] == [(None, 3), (None, 7)]
    with pytest.raises(BlockRefused, match="not by client"):
        await tools.core_memory("write", "fixed", "x")
    for action, arguments, missing in (
        ("write", {}, "label"),
        ("append", {"label": "threads"}, "value"),
        ("replace", {"label": "threads", "value": "x"}, "old_text"),
    ):
        with pytest.raises(UsageError, match=f"needs {missing}"):
            await tools.core_memory(action, **arguments)


async def test_clients_have_lettas_names_with_verified_writes(lab):
    tools = Tools(lab, Author("client", "claude"), rights=rights(threads=("client",)))
    assert (await tools.core_memory_append("threads", "new")).version == 2
    assert (await tools.core_memory_replace("threads", "old", "first")).version == 3
    assert await lab.texts() == ["old", "old\nnew", "first\nnew"]


async def test_a_refusal_reaches_the_caller(lab, tools):
    lab.letta.tools = ("memory_insert",)
    with pytest.raises(BlockRefused, match="memory_insert"):
        await tools.write_core_memory("threads", "new")


@pytest.mark.parametrize("name", [*AGENTS, *CLIENTS])
def test_who_is_shown_them(name):
    spec = load_registry().get(name)
    assert spec is not None
    assert spec.audience == ("agent" if name in AGENTS else "client")
    assert spec.scope == f"blocks:{spec.effect}"
    assert spec.audience == "client" or name not in LETTA_BUILTINS
