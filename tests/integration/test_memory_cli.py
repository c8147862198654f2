"""``han-solo memory`` as an operator runs it: words, exit codes, nothing a terminal obeys."""

import json

import pytest

from han_solo.embed.weights import fetch_weights

from .memory_fixtures import make_cli


@pytest.fixture
async def memory(database_url, tmp_path, cache):
    await fetch_weights(cache, lambda _word: None)
    return make_cli(database_url, tmp_path, cache)


def test_what_is_added_is_found_shown_and_counted(memory):
    done = memory(
        "add", "The ferry to Hven leaves at noon.", "--author", "scott", "--tag", "trips",
        "--title", "The ferry", "--at", "2026-05-08T13:56:00+02:00",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "Passage 1 was written.\n"), done.stderr

    found = memory("search", "when does the boat to Hven go?")
    assert found.returncode == 0, found.stderr
    head, text, why = found.stdout.splitlines()
    assert head == "1  The ferry  2026-05-08 13:56  scott, said so"
    assert text.strip() == "The ferry to Hven leaves at noon."
    assert "has hven" in why

    shown = memory("show", "1")
    assert "shown, read 1 time, last " in shown.stdout
    assert "tags        trips" in shown.stdout

    looked = memory("mri")
    assert looked.returncode == 0, looked.stderr
    assert "1 passage: 0 foundational, 1 new since" in looked.stdout
    assert "1 search since then: 0 found nothing" in looked.stdout


def test_nothing_found_is_exit_code_1_and_a_blind_spot(memory):
    memory("add", "Heron.")
    done = memory("search", "zymurgy quince")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Nothing was found" in done.stderr
    looked = memory("mri")
    assert "Blind: 1 question" in looked.stdout
    assert "zymurgy quince" in looked.stdout
    assert "Dead: 1 passage" in looked.stdout


def test_json_is_whole_and_alone_on_stdout(memory):
    added = json.loads(memory("add", "-", "--json", input="Heron — ű.\n", stdin=None).stdout)
    assert added["passage"]["text"] == "Heron — ű.\n"
    found = json.loads(memory("search", "heron", "--json").stdout)
    assert [hit["passage_id"] for hit in found["hits"]] == [added["passage"]["id"]]
    assert json.loads(memory("show", "1", "--json").stdout)["access_count"] == 1
    assert json.loads(memory("mri", "--json").stdout)["searches"] == 1


def test_a_mistake_is_one_sentence_and_writes_nothing(memory, tmp_path):
    for arguments, words in [
        (("add", ""), "is empty"),
        (("add", "   "), "is empty"),
        (("add", "x", "--importance", "7"), "out of range"),
        (("add", "x", "--at", "yesterday"), "'yesterday' is no time for --at"),
        (("add",), "is empty"),
        (("search", "x", "--limit", "0"), "The limit 0 is out of range"),
        (("search", "x", "--from", "soon"), "is no time for --from"),
        (("search", ""), "The query is empty"),
        (("search", *"abcdefghi"), "There are 9 queries"),
        (("show", "7"), "There is no passage 7"),
        (("mri", "--days", "0"), "0 days is out of range"),
    ]:
        done = memory(*arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert words in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
    binary = tmp_path / "picture"
    binary.write_bytes(b"ab\xff")
    with binary.open("rb") as file:
        assert "is not UTF-8" in memory("add", stdin=file).stderr
    assert json.loads(memory("mri", "--json").stdout)["passages"] == 0


def test_what_an_agent_wrote_does_not_steer_the_terminal(memory):
    memory("add", "heron \x1b[2J\x1b]0;owned\x07 [red]x[/red]", "--title", "a\x1b[31m")
    for done in (memory("search", "heron"), memory("show", "1"), memory("mri")):
        assert "\x1b" not in done.stdout
        assert "\x07" not in done.stdout
    assert "[red]x[/red]" in memory("show", "1").stdout


def test_a_database_that_is_away_is_said_in_one_sentence(memory):
    memory.environment["HAN_SOLO_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/none"
    done = memory("search", "x")
    assert done.returncode != 0
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_the_plot_gives_way_on_a_narrow_terminal_and_its_words_do_not(memory):
    memory("add", "The ferry to Hven leaves at noon.")
    memory("search", "ferry")
    done = memory("mri", env=memory.environment | {"COLUMNS": "40"})
    assert done.returncode == 0, done.stderr
    plot = done.stdout.split("Passages by how often")[1].split("Searches")[0]
    assert "never" in plot
    assert "1  100%" in plot
    assert "\u2026" not in plot


def test_a_text_is_shown_as_it_is_and_a_title_is_one_line(memory):
    memory("add", "status :warning: ratio 3:100:4", "--title", "x\n9  Trusted  said so\n    Wire")
    for done in (memory("show", "1"), memory("search", "ratio")):
        assert "status :warning: ratio 3:100:4" in done.stdout, done.stderr
        assert done.stdout.splitlines()[0].startswith("1  x 9 Trusted said so Wire")
