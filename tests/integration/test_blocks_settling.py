"""What Letta holds and what was last written are brought into agreement, and nothing is lost."""

from __future__ import annotations

import asyncio

import pytest

from han_solo.blocks.model import Author, digest
from han_solo.errors import (
    LettaUnavailable,
    LettaUnreachable,
    WriteNotVerified,
    WriteUnsettled,
)
from tests.integration.blocks_fixtures import SCOTT, open_lab

AGENT = Author("agent", "ren")


@pytest.fixture
async def lab(database_url):
    async with open_lab(database_url) as lab:
        yield lab


async def inspect(lab):
    (found,) = await lab.blocks().inspect("threads")
    return found


def kinds(found):
    return [event.kind for event in found.events]


# Outside edits


async def test_what_is_as_recorded_is_left_alone(lab):
    await lab.write("one")
    await lab.blocks().inspect()
    lab.letta.sent.clear()
    lab.letta.reads.clear()
    found = await lab.blocks().inspect()
    assert [(each.label, each.events) for each in found] == [("fixed", ()), ("threads", ())]
    assert (lab.letta.sent, lab.letta.reads) == ([], ["agent"])


async def test_an_outside_edit_becomes_a_version(lab):
    await lab.write("one")
    lab.letta.edit("by hand")
    found = await inspect(lab)
    assert (kinds(found), found.version, lab.letta.value) == (["adopted"], 3, "by hand")
    last = await lab.last()
    assert (last.author_kind, last.author, last.origin) == ("outside", "outside", "adopted_outside")
    assert (await inspect(lab)).events == ()


async def test_an_outside_edit_is_kept_before_it_is_written_over(lab):
    await lab.write("one")
    lab.letta.edit("by hand")
    written = await lab.blocks().write("threads", "two")
    assert (written.version, written.adopted) == (4, (3,))
    assert await lab.texts() == ["old", "one", "by hand", "two"]


async def test_an_append_adds_to_the_outside_edit(lab):
    await lab.write("one")
    lab.letta.edit("one\nby hand")
    await lab.blocks().append("threads", "two")
    assert lab.letta.value == "one\nby hand\ntwo"


# Reverts


async def test_a_revert_is_put_right(lab):
    await lab.write("one", "two", "three")
    lab.letta.edit("one")
    found = await inspect(lab)
    assert kinds(found) == ["repaired"]
    assert (found.events[0].undone, found.events[0].version) == ((3, 4), 5)
    assert lab.letta.value == "three"
    last = await lab.last()
    assert (last.origin, last.source, last.author) == ("revert_repaired", 4, "han-solo")
    assert "version 2 again" in last.reason
    assert await lab.texts() == ["old", "one", "two", "three", "three"]


async def test_a_write_over_a_revert_builds_on_what_was_reverted(lab):
    await lab.write("one", "one\ntwo")
    lab.letta.edit("one")
    written = await lab.blocks().append("threads", "three")
    assert lab.letta.value == "one\ntwo\nthree"
    assert (written.reverted, written.adopted) == ((3,), ())


async def test_a_read_only_block_is_put_right_as_well(lab):
    (first,) = await lab.blocks().inspect("fixed")
    lab.letta.edit("changed", "block-2")
    await lab.blocks().inspect("fixed")
    lab.letta.edit("old", "block-2")
    (found,) = await lab.blocks().inspect("fixed")
    assert (first.version, kinds(found)) == (1, ["repaired"])
    assert lab.letta.blocks["block-2"].value == "changed"


# Edits of an older version


async def test_an_edit_of_an_older_version_is_joined_with_what_it_undid(lab):
    await lab.write("one\ntwo\nthree", "one\ntwo\nthree\nours")
    lab.letta.edit("one\ntwo\nthree\ntheirs")
    found = await inspect(lab)
    assert kinds(found) == ["adopted", "merged"]
    assert found.events[1].undone == (3,)
    assert lab.letta.value == "one\ntwo\nthree\nours\ntheirs"
    assert (await lab.texts())[3:] == ["one\ntwo\nthree\ntheirs", "one\ntwo\nthree\nours\ntheirs"]
    last = await lab.last()
    assert (last.origin, last.source) == ("merged", 3)
    adopted = await lab.blocks().version("threads", 4)
    assert (adopted.origin, adopted.source) == ("adopted_outside", 2)


async def test_an_edit_that_can_not_be_joined_stands_and_names_both_versions(lab):
    base = "\n".join(f"line {n}" for n in range(9))
    ours = base.replace("line 3", "a long line of ours, in place of the third one")
    await lab.write(base, ours)
    lab.letta.edit(base.replace("line 3", "line 3b"))
    found = await inspect(lab)
    assert kinds(found) == ["adopted", "overwritten"]
    assert (found.events[1].version, found.events[1].undone) == (4, (3,))
    assert lab.letta.value == base.replace("line 3", "line 3b")
    assert "Version 3 is in the history" in found.events[1].sentence


async def test_a_new_text_is_no_edit_of_an_old_one(lab):
    await lab.write("one\ntwo\nthree", "one\ntwo\nthree\nours")
    lab.letta.edit("something else entirely")
    found = await inspect(lab)
    assert (kinds(found), lab.letta.value) == (["adopted"], "something else entirely")


async def test_a_join_over_the_limit_is_not_made(lab):
    base = "\n".join(["x" * 80] * 10)
    await lab.write(base, f"{base}\n{'o' * 100}")
    lab.letta.edit(f"{base}\n{'t' * 100}")
    found = await inspect(lab)
    assert kinds(found) == ["adopted", "overwritten"]
    assert "too long" in found.events[1].sentence


async def test_tabs_that_letta_made_blanks_do_not_hide_the_base(lab):
    await lab.write("\ta\n\tb\n\tc", "\ta\n\tb\n\tc\n\tours")
    lab.letta.edit("\ta\n\tb\n\tc\ntheirs".expandtabs())
    await inspect(lab)
    assert lab.letta.value == "\ta\n\tb\n\tc\n\tours\ntheirs".expandtabs()


# Writes cut short


async def cut_short(lab, moment, value="new", author=AGENT):
    """Let a write end without a trace of its process at that moment: its task is cancelled."""
    reached = asyncio.Event()

    async def stop():
        reached.set()
        await asyncio.Event().wait()

    setattr(lab.letta, f"{moment}_write", stop)
    writing = asyncio.create_task(lab.blocks(author).write("threads", value, reason="why"))
    await reached.wait()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    setattr(lab.letta, f"{moment}_write", None)


async def test_a_write_cut_short_after_it_landed_is_recorded_as_its_authors(lab):
    await lab.write("one")
    await cut_short(lab, "after")
    assert await lab.texts() == ["old", "one"]
    assert await lab.intents() == [("new", True)]
    found = await inspect(lab)
    assert (kinds(found), found.version) == (["settled"], 3)
    last = await lab.last()
    assert (last.author, last.reason, last.origin) == ("ren", "why", "write")
    assert (await lab.texts(), await lab.intents()) == (["old", "one", "new"], [])


async def test_a_write_cut_short_before_it_landed_is_dropped(lab):
    await lab.write("one")
    await cut_short(lab, "before")
    found = await inspect(lab)
    assert (kinds(found), found.version, lab.letta.value) == (["dropped"], 2, "one")
    assert await lab.texts() == ["old", "one"]


async def test_the_next_write_settles_the_one_before(lab):
    await lab.write("one")
    await cut_short(lab, "after", "one\nnew")
    written = await lab.blocks().append("threads", "more")
    assert (written.version, lab.letta.value) == (4, "one\nnew\nmore")
    assert [event.kind for event in written.events] == ["settled"]


async def test_what_is_still_on_its_way_is_waited_for(database_url):
    async with open_lab(database_url, settle_after_s=60) as lab:
        await lab.write("one")
        await cut_short(lab, "before")

        async def carry_out_late():
            await asyncio.sleep(0.1)
            lab.letta.edit("new")

        late = asyncio.create_task(carry_out_late())
        blocks = lab.blocks(clock=None)
        (found,) = await blocks.inspect("threads")
        await late
        assert (kinds(found), await lab.texts()) == (["settled"], ["old", "one", "new"])


async def test_a_write_that_comes_after_it_was_given_up_is_still_its_authors(lab):
    await lab.write("one")
    await cut_short(lab, "before")
    await inspect(lab)
    lab.letta.edit("new")
    found = await inspect(lab)
    assert kinds(found) == ["settled"]
    assert "late" in found.events[0].sentence
    assert (await lab.last()).author == "ren"
    assert await lab.intents() == []


async def test_a_late_write_does_not_swallow_the_one_after_it(lab):
    await lab.write("one\ntwo\nthree")
    await cut_short(lab, "before", "one\ntwo\nthree\nlate")
    await lab.blocks().append("threads", "after")
    lab.letta.edit("one\ntwo\nthree\nlate")
    found = await inspect(lab)
    assert kinds(found) == ["settled", "merged"]
    assert lab.letta.value == "one\ntwo\nthree\nafter\nlate"


# Answers that say nothing, and answers that lie


async def test_a_write_that_landed_unheard_counts_as_done(lab):
    lab.letta.fates = ["lands unheard"]
    assert (await lab.blocks().write("threads", "new")).version == 2
    assert (lab.letta.sent, await lab.intents()) == (["new"], [])


async def test_a_write_that_was_never_sent_leaves_nothing(lab):
    lab.letta.fates = [LettaUnreachable("no connection")]
    with pytest.raises(LettaUnreachable):
        await lab.blocks().write("threads", "new")
    assert (await lab.texts(), await lab.intents()) == (["old"], [])


async def test_a_failure_of_letta_that_changed_nothing_leaves_nothing(lab):
    lab.letta.fates = [LettaUnavailable("failed with 500", status_code=500)]
    with pytest.raises(LettaUnavailable, match="500"):
        await lab.blocks().write("threads", "new")
    assert (await lab.texts(), await lab.intents()) == (["old"], [])


async def test_no_answer_and_the_old_text_is_not_known_until_it_is_settled(lab):
    lab.letta.fates = ["late"]
    with pytest.raises(WriteUnsettled, match="holds what it held before"):
        await lab.blocks(AGENT).write("threads", "new")
    lab.letta.arrive()
    assert kinds(await inspect(lab)) == ["settled"]
    assert (await lab.last()).author == "ren"


async def test_what_can_not_be_read_back_is_not_known_until_it_is_settled(lab):
    async def go_away():
        lab.letta.is_away = True

    lab.letta.after_write = go_away
    with pytest.raises(WriteUnsettled, match="could not be read back"):
        await lab.blocks(AGENT).write("threads", "new")
    lab.letta.is_away, lab.letta.after_write = False, None
    assert await lab.texts() == ["old"]
    assert kinds(await inspect(lab)) == ["settled"]
    assert await lab.texts() == ["old", "new"]


async def test_a_text_that_letta_altered_is_not_verified_with_both_hashes(lab):
    lab.letta.fates = ["is altered"]
    with pytest.raises(WriteNotVerified) as caught:
        await lab.blocks().write("threads", "new")
    assert caught.value.expected_sha256 == digest("new")
    assert caught.value.found_sha256 == digest("altered")
    assert "altered" not in str(caught.value)
    assert await lab.texts() == ["old"]
    assert kinds(await inspect(lab)) == ["adopted"]


async def test_a_write_that_was_taken_and_not_stored_is_not_verified(lab):
    await lab.write("one")
    lab.letta.fates = ["vanishes"]
    with pytest.raises(WriteNotVerified):
        await lab.blocks().write("threads", "new")
    assert await lab.texts() == ["old", "one"]


async def test_a_write_that_was_overwritten_at_once_is_kept_and_not_called_verified(lab):
    lab.letta.fates = ["is overwritten"]
    with pytest.raises(WriteNotVerified, match="written as version 2"):
        await lab.blocks().append("threads", "new")
    assert await lab.texts() == ["old", "old\nnew", "another's"]
    assert lab.letta.sent == ["old\nnew"]


async def test_a_write_that_was_reverted_at_once_is_put_back_and_counts(lab):
    async def revert():
        if len(lab.letta.sent) == 2:
            lab.letta.edit("old")

    await lab.write("one")
    lab.letta.after_write = revert
    lab.letta.fates = ["lands"]
    written = await lab.blocks().append("threads", "new")
    assert lab.letta.value == "one\nnew"
    assert written.changed
    assert await lab.texts() == ["old", "one", "one\nnew", "one\nnew"]


async def test_a_cancelled_writer_gives_the_lock_back(lab):
    await cut_short(lab, "after")
    async with asyncio.timeout(2):
        assert (await lab.blocks(SCOTT).write("threads", "next")).changed
