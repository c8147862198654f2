"""A block write counts once it was read back and is a version, and is refused where it can not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from han_solo.blocks.model import Author, digest
from han_solo.blocks.versions import BlockVersions
from han_solo.errors import (
    BlockBusy,
    BlockRefused,
    LettaConflict,
    LettaRefused,
    LettaUnavailable,
    UsageError,
)
from han_solo.store.database import Database
from tests.integration.blocks_fixtures import THREADS, FakeLetta, Lab, open_lab, rights
from tests.integration.store_fixtures import migrated
from tests.integration.transaction_pooler import TransactionPooler


@pytest.fixture
async def lab(database_url):
    async with open_lab(database_url) as lab:
        yield lab


async def refused(reason, call):
    with pytest.raises(BlockRefused) as caught:
        await call
    assert caught.value.reason == reason
    return str(caught.value)


# What a write comes to


async def test_a_write_is_read_back_and_kept(lab):
    written = await lab.blocks().write("threads", "new", reason="because")
    assert (written.changed, written.version, written.length, written.limit) == (True, 2, 3, 1000)
    assert written.sha256 == digest("new")
    assert lab.letta.value == "new"
    assert await lab.texts() == ["old", "new"]
    last = await lab.last()
    assert (last.author_kind, last.author, last.reason) == ("operator", "scott", "because")
    assert (last.origin, last.label, last.agent_id) == ("write", "threads", "agent-1")
    assert await lab.intents() == []


async def test_writing_what_is_there_sends_nothing(lab):
    await lab.write("new")
    lab.letta.sent.clear()
    written = await lab.blocks().write("threads", "new")
    assert (written.changed, written.version) == (False, 2)
    assert lab.letta.sent == []
    assert await lab.texts() == ["old", "new"]


async def test_the_first_access_keeps_what_was_there_as_version_1(lab):
    written = await lab.blocks().write("threads", "old")
    assert (written.changed, written.version) == (False, 1)
    assert [event.kind for event in written.events] == ["first_seen"]
    first = await lab.last()
    assert (first.origin, first.author_kind) == ("adopted_outside", "outside")


async def test_a_block_as_its_seed_says_so(lab):
    seeded = replace(rights(), seeds={"threads": "old"})
    await lab.blocks(rights=seeded).inspect("threads")
    first = await lab.last()
    assert (first.origin, first.author) == ("seed", "han-solo")


async def test_an_append_stands_on_a_line_of_its_own(lab):
    blocks = lab.blocks()
    await blocks.append("threads", "one")
    await blocks.append("threads", "two\n")
    await blocks.append("threads", "three")
    assert lab.letta.value == "old\none\ntwo\nthree"
    lab.letta.edit("")
    await blocks.append("threads", "first")
    assert lab.letta.value == "first"


async def test_a_passage_is_replaced_where_it_stands_once(lab):
    await lab.write("one two two aaa")
    written = await lab.blocks().replace("threads", "one", "1")
    assert lab.letta.value == "1 two two aaa"
    assert written.version == 3
    said = await refused("not_exactly_once", lab.blocks().replace("threads", "two", "2"))
    assert "occurs 2 times" in said
    said = await refused("not_exactly_once", lab.blocks().replace("threads", "nine", "9"))
    assert "occurs 0 times" in said
    await refused("not_exactly_once", lab.blocks().replace("threads", "aa", "b"))
    assert lab.letta.value == "1 two two aaa"


async def test_a_version_is_restored_as_a_new_one(lab):
    await lab.write("one", "two")
    written = await lab.blocks().restore("threads", 2)
    assert (written.version, lab.letta.value) == (4, "one")
    last = await lab.last()
    assert (last.origin, last.source, last.reason) == ("restored", 2, "Version 2 was restored.")


async def test_a_version_that_is_not_there_is_refused_with_those_that_are(lab):
    await lab.write("one")
    said = await refused("unknown_version", lab.blocks().restore("threads", 9))
    assert "It has 1 to 2" in said
    assert lab.letta.value == "one"


async def test_history_goes_newest_first_in_pages(lab):
    await lab.write("one", "two", "three")
    blocks = lab.blocks()
    assert [entry.number for entry in await blocks.history("threads", limit=2)] == [4, 3]
    assert [entry.number for entry in await blocks.history("threads", before=3)] == [2, 1]
    version = await blocks.version("threads", 3)
    assert (version.value, version.length, version.sha256) == ("two", 3, digest("two"))


async def test_a_label_that_the_agent_no_longer_has_keeps_its_history(lab):
    await lab.write("one")
    del lab.letta.blocks["block-1"]
    assert [entry.number for entry in await lab.blocks().history("threads")] == [2, 1]
    assert (await lab.blocks().version("threads", 2)).value == "one"


# Reading


async def test_a_read_says_which_version_it_is(lab):
    assert (await lab.blocks().read("threads")).version is None
    await lab.write("one")
    state = await lab.blocks(rights=rights(threads=("agent", "dream"))).read("threads")
    assert (state.version, state.value, state.length) == (2, "one", 3)
    assert (state.limit, state.writers, state.sha256) == (1000, ("agent", "dream"), digest("one"))
    lab.letta.edit("outside")
    assert (await lab.blocks().read("threads")).version is None


async def test_blocks_are_listed_by_label(lab):
    await lab.write("one")
    found = await lab.blocks().list()
    assert [(state.label, state.version) for state in found] == [("fixed", None), ("threads", 2)]


async def test_reads_record_nothing(lab):
    await lab.blocks().list()
    await lab.blocks().read("threads")
    assert await lab.texts() == []


# Refusals


@pytest.mark.parametrize("act", ["read", "write", "append", "replace", "history", "inspect"])
async def test_an_unknown_label_names_the_known_ones(lab, act):
    blocks = lab.blocks()
    calls = {
        "read": lambda: blocks.read("nine"),
        "write": lambda: blocks.write("nine", "x"),
        "append": lambda: blocks.append("nine", "x"),
        "replace": lambda: blocks.replace("nine", "x", "y"),
        "history": lambda: blocks.history("nine"),
        "inspect": lambda: blocks.inspect("nine"),
    }
    assert "It has: fixed, threads" in await refused("unknown_label", calls[act]())


async def test_over_the_limit_is_refused_with_the_numbers(lab):
    said = await refused("over_limit", lab.blocks().write("threads", "x" * 1001))
    assert "1,001 characters, 1 more than its limit of 1,000" in said
    await lab.write("x" * 998)
    await refused("over_limit", lab.blocks().append("threads", "xx"))
    await refused("over_limit", lab.blocks().replace("threads", "x" * 998, "y" * 1001))
    assert lab.letta.sent == ["x" * 998]
    assert (await lab.blocks().append("threads", "x")).length == 1000


async def test_the_limit_counts_characters(lab):
    assert (await lab.blocks().write("threads", "\U0001f600" * 1000)).length == 1000


async def test_a_read_only_block_is_refused(lab):
    assert "read-only" in await refused("read_only", lab.blocks().write("fixed", "x"))


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"], ids=["NUL", "surrogate"])
async def test_what_can_not_be_stored_is_refused_by_name(lab, text, request):
    name = request.node.callspec.id
    blocks = lab.blocks()
    for call in (
        blocks.write("threads", text),
        blocks.append("threads", text),
        blocks.replace("threads", "old", text),
        blocks.write("threads", "fine", reason=text),
    ):
        with pytest.raises(UsageError, match=name):
            await call
    assert (lab.letta.reads, lab.letta.sent) == ([], [])


@pytest.mark.parametrize(
    ("author", "may"),
    [
        (Author("agent", "agent"), True),
        (Author("job", "dream"), True),
        (Author("job", "upkeep"), False),
        (Author("client", "claude"), False),
        (Author("operator", "scott"), False),
        (Author("client", "dream"), False),
    ],
    ids=str,
)
async def test_only_the_writers_of_the_spec_write(lab, author, may):
    blocks = lab.blocks(author, rights=rights(threads=("agent", "dream")))
    if may:
        assert (await blocks.write("threads", "new")).changed
        assert (await lab.last()).author == author.name
    else:
        said = await refused("not_a_writer", blocks.write("threads", "new"))
        assert "written by agent and dream only" in said
        assert lab.letta.sent == []


async def test_an_undeclared_block_is_the_agents_and_the_operators(lab):
    for kind, may in (("agent", True), ("operator", True), ("client", False)):
        call = lab.blocks(Author(kind, "x")).write("threads", kind)
        if may:
            assert (await call).changed
        else:
            await refused("not_a_writer", call)


async def test_a_write_expecting_another_version_is_refused(lab):
    await lab.write("one")
    assert (await lab.blocks().write("threads", "two", expected_version=2)).version == 3
    said = await refused(
        "version_conflict", lab.blocks().write("threads", "three", expected_version=2)
    )
    assert "at version 3, not at version 2" in said
    assert lab.letta.value == "two"


async def test_an_outside_edit_makes_the_expected_version_old(lab):
    await lab.write("one")
    lab.letta.edit("outside")
    await refused("version_conflict", lab.blocks().write("threads", "two", expected_version=2))
    assert lab.letta.value == "outside"
    assert await lab.texts() == ["old", "one", "outside"]


async def test_nothing_to_append_and_nothing_to_replace_are_refused(lab):
    with pytest.raises(UsageError, match="nothing to append"):
        await lab.blocks().append("threads", "")
    with pytest.raises(UsageError, match="No text to be replaced"):
        await lab.blocks().replace("threads", "", "x")


async def test_a_reason_of_more_than_a_sentence_is_refused(lab):
    with pytest.raises(UsageError, match="501 characters"):
        await lab.blocks().write("threads", "new", reason="x" * 501)


@pytest.mark.parametrize("builtin", ["memory_insert", "core_memory_append", "memory"])
async def test_writes_are_refused_while_a_built_in_memory_tool_is_attached(lab, builtin):
    lab.letta.tools = ("list_notecards", builtin)
    said = await refused("builtin_memory_tools", lab.blocks().write("threads", "new"))
    assert builtin in said
    assert "sync-tools" in said
    assert (await lab.blocks().read("threads")).value == "old"
    lab.letta.tools = ()
    assert (await lab.blocks().write("threads", "new")).changed


# Letta's answers


async def test_a_conflict_is_looked_at_and_tried_again(lab):
    lab.letta.fates = [LettaConflict("409"), LettaConflict("409")]
    assert (await lab.blocks().append("threads", "new")).version == 2
    assert lab.letta.sent == ["old\nnew"] * 3
    assert await lab.intents() == []


async def test_what_the_other_writer_of_a_conflict_wrote_is_kept(lab):
    async def meet():
        if not lab.letta.sent:
            lab.letta.edit("outside")

    lab.letta.before_write, lab.letta.fates = meet, [LettaConflict("409")]
    written = await lab.blocks().append("threads", "new")
    assert lab.letta.value == "outside\nnew"
    assert await lab.texts() == ["old", "outside", "outside\nnew"]
    assert written.adopted == (2,)


async def test_conflicts_are_tried_again_only_so_often(lab):
    lab.letta.fates = [LettaConflict("409")] * 50
    with pytest.raises(BlockBusy):
        await lab.blocks().write("threads", "new")
    assert 5 < len(lab.letta.sent) < 20
    assert await lab.texts() == ["old"]
    assert await lab.intents() == []


async def test_a_refusal_of_lettas_is_passed_on_and_leaves_nothing(lab):
    lab.letta.fates = [LettaRefused("422")]
    with pytest.raises(LettaRefused):
        await lab.blocks().write("threads", "new")
    assert (await lab.texts(), await lab.intents()) == (["old"], [])


@pytest.mark.parametrize("act", ["read", "list", "write", "inspect"])
async def test_running_out_of_time_is_an_error_with_a_sentence(lab, act):
    lab.letta.hangs = True
    blocks = lab.blocks(timeout_s=0.05)
    calls = {
        "read": lambda: blocks.read("threads"),
        "list": blocks.list,
        "write": lambda: blocks.write("threads", "new"),
        "inspect": blocks.inspect,
    }
    with pytest.raises(LettaUnavailable, match=r"longer than 0\.05 s"):
        await calls[act]()


# Several writers


async def test_appends_of_many_at_once_are_all_kept(lab):
    lab.letta.edit("")
    await asyncio.gather(*(lab.blocks().append("threads", f"line {n}") for n in range(40)))
    assert sorted(lab.letta.value.split("\n")) == sorted(f"line {n}" for n in range(40))
    texts = await lab.texts()
    assert len(texts) == 41
    assert texts[-1] == lab.letta.value


async def test_many_blocks_at_once_do_not_wait_for_each_others_connections(database_url):
    blocks = {f"block-{n}": replace(THREADS, id=f"block-{n}", label=f"l{n}") for n in range(30)}
    async with open_lab(database_url, blocks=blocks) as lab:
        writes = (lab.blocks().append(f"l{n}", "x") for n in range(30))
        written = await asyncio.gather(*writes)
        assert {write.version for write in written} == {2}


async def test_one_connection_is_enough(database_url):
    async with migrated(database_url, pool_size=1) as db:
        lab = Lab(FakeLetta(), BlockVersions(db), db)
        await asyncio.gather(*(lab.blocks().append("threads", "x") for _ in range(3)))
        assert lab.letta.value == "old\nx\nx\nx"


async def test_a_transaction_pooler_keeps_writers_apart_too(database_url):
    port = urlsplit(database_url).port
    async with TransactionPooler(port) as pooler:
        url = database_url.replace(f":{port}/", f":{pooler.port}/")
        options = {"direct_url": database_url, "pooler": "transaction", "pool_size": 4}
        async with migrated(url, **options) as db, migrated(url, **options) as other:
            letta = FakeLetta()
            labs = [Lab(letta, BlockVersions(each), each) for each in (db, other)]
            await asyncio.gather(
                *(lab.blocks().append("threads", f"{n}") for n in range(12) for lab in labs)
            )
            texts = await labs[0].texts()
            assert len(texts) == 25
            assert texts[-1] == letta.value
            assert sorted(letta.value.split("\n")[1:]) == sorted(f"{n // 2}" for n in range(24))


async def test_a_writer_that_waits_in_vain_is_told_so(lab):
    async with lab.versions.hold("block-1", wait_s=1):
        with pytest.raises(BlockBusy, match="Other writers"):
            await lab.blocks(timeout_s=0.3).write("threads", "new")
    assert (await lab.blocks().write("threads", "new")).changed


async def test_a_writer_waits_for_one_of_another_process(lab, database_url):
    db = await Database.connect(database_url)
    async with BlockVersions(db).hold("block-1", wait_s=1):
        with pytest.raises(BlockBusy, match="Other writers"):
            await lab.blocks(timeout_s=0.3).write("threads", "new")
        waiting = asyncio.create_task(lab.blocks().write("threads", "new"))
        await asyncio.sleep(0.05)
        assert lab.letta.sent == []
    assert (await waiting).changed
    await db.close()


async def test_a_block_that_moved_to_another_id_is_written_there(lab):
    await lab.write("one")
    lab.letta.blocks = {"block-9": replace(THREADS, id="block-9", value="elsewhere")}
    lab.letta.reads.clear()
    with pytest.raises(KeyError):  # the fake's way of saying that the old block is gone
        await lab.letta.fetch_block("block-1")
    lab.versions.agents.forget("agent-1")
    written = await lab.blocks().append("threads", "more")
    assert (written.block_id, written.version) == ("block-9", 2)
    assert await lab.texts("block-9") == ["elsewhere", "elsewhere\nmore"]
    assert await lab.texts() == ["old", "one"]


async def test_an_agent_read_just_now_is_not_read_again_for_a_write(lab):
    await lab.blocks().read("threads")
    lab.letta.reads.clear()
    await lab.write("one")
    lab.letta.reads.clear()
    await lab.write("two")
    assert lab.letta.reads == ["block", "block"]
