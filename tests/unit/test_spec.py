"""The agent spec: what is read, and that every fault is one sentence with line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from han_solo.errors import SpecError
from han_solo.reconcile import spec as specs

MINIMAL = """\
[agent]
name = "nova"
person = "Robin"

[model]
handle = "openai/gpt-4o"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "agent.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_spec_is_rens_with_the_reasoner_off_and_the_whole_window() -> None:
    spec = specs.load_spec()

    assert (spec.name, spec.person, spec.is_shipped) == ("ren", "Scott", True)
    assert spec.model.handle == "google_ai/gemini-2.5-flash"
    assert spec.model.settings()["enable_reasoner"] is False
    assert spec.model.context_window == 1_048_576
    assert spec.builtin_tools == ()
    assert [block.label for block in spec.blocks] == [
        "always_loaded_core",
        "pending_thoughts",
        "scott_portrait_forming",
        "ren_portrait_forming",
        "ren_voice",
        "memory_landscape",
        "open_threads",
        "session_state",
        "seed_signals",
        "project_state",
    ]


def test_each_shipped_block_says_what_it_is_for_and_starts_with_something() -> None:
    for block in specs.load_spec().blocks:
        assert block.description
        assert block.seed.strip()
        assert "{" not in block.seed + block.description + block.label


def test_the_operators_blocks_are_not_the_agents_to_write() -> None:
    spec = specs.load_spec()

    for label in ("always_loaded_core", "ren_voice"):
        block = spec.block(label)
        assert block
        assert block.writers == ("operator",)


def test_the_person_is_a_field_that_reaches_texts_and_labels() -> None:
    spec = specs.load_spec(person="Anne-Marie O'Neil")

    assert spec.block("anne_marie_o_neil_portrait_forming")
    assert spec.system
    assert "partner of Anne-Marie O'Neil" in spec.system


def test_another_model_drops_the_numbers_that_were_chosen_for_the_specs_own() -> None:
    spec = specs.load_spec(model="openai-proxy/rehearsal")

    assert spec.model.handle == "openai-proxy/rehearsal"
    assert spec.model.settings() == {"enable_reasoner": False}


def test_the_same_model_keeps_them() -> None:
    spec = specs.load_spec(model="google_ai/gemini-2.5-flash")

    assert spec.model.context_window == 1_048_576


def test_what_is_left_out_is_not_declared(tmp_path: Path) -> None:
    spec = specs.load_spec(write(tmp_path, MINIMAL))

    assert spec.model.settings() == {"enable_reasoner": False}
    assert spec.tool_rules is None
    assert spec.system is None
    assert spec.blocks == ()
    assert not spec.is_shipped


def test_braces_that_are_no_placeholder_stay(tmp_path: Path) -> None:
    text = MINIMAL + "[system]\ntext = 'Say {\"ok\": true} to {person}, {agent}.'\n"

    assert specs.load_spec(write(tmp_path, text)).system == 'Say {"ok": true} to Robin, nova.'


def test_rules_are_phrases_with_the_names_filled_in(tmp_path: Path) -> None:
    block = '[[blocks]]\nlabel = "a"\nlimit = 90\nmust_contain = ["ask {person}"]\n'
    rules = '[system]\nmust_not_contain = ["search* * before every message"]\n'
    spec = specs.load_spec(write(tmp_path, MINIMAL + block + rules))

    found = spec.block("a")
    assert found
    assert found.rules.missing("Ask  Robin first.") == ()
    assert found.rules.missing("Ask Scott.") == ("ask Robin",)
    assert spec.system is None, "rules alone declare no prompt"
    assert not spec.system_rules.allow("Always search archival before every message.")


INVERTED = (
    "Search archival before reading core blocks.",
    "Always search your memory before you read the core blocks.",
    "Before reading any core block's text, look into archival memory; core blocks come second.",
)


@pytest.mark.parametrize("text", INVERTED)
def test_the_shipped_rules_know_the_instruction_that_was_once_inverted(text: str) -> None:
    spec = specs.load_spec()
    core = spec.block("always_loaded_core")

    assert core
    assert core.rules.allow(core.seed)
    assert core.rules.forbidden(f"{core.seed}\n{text}")
    assert not core.rules.forbidden(f"{core.seed}\nNever search archival before reading blocks.")


def test_the_system_prompt_may_lie_beside_the_spec(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("You are {agent}.\n", encoding="utf-8")

    spec = specs.load_spec(write(tmp_path, MINIMAL + '[system]\nfile = "prompt.md"\n'))

    assert spec.system == "You are nova."


BLOCK = '\n[[blocks]]\nlabel = "a"\nlimit = 10\n'

FAULTS = {
    "syntax": ("[agent]\nname = \n", 2, 8, "Invalid value"),
    "cut off": ('[agent]\nname = "x', 2, 1, "at the end"),
    "no agent": ('[model]\nhandle = "a/b"\n', 1, 1, "agent is missing"),
    "no name": ('[agent]\nperson = "x"\n[model]\nhandle = "a/b"\n', 1, 2, "agent.name is missing"),
    "unknown field": (
        MINIMAL + "context_windw = 8000\n",
        7,
        1,
        "unknown field 'context_windw'; did you mean 'context_window'?",
    ),
    "unknown table": (MINIMAL + "\n[modle]\n", 8, 2, "did you mean 'model'?"),
    "wrong type": (MINIMAL + 'context_window = "8000"\n', 7, 1, "valid integer"),
    "too small": (MINIMAL + "max_tokens = 0\n", 7, 1, "greater than or equal to 1"),
    "silent reasoner": (MINIMAL + "enable_reasoner = true\n", 5, 2, "answers nothing"),
    "bad handle": (MINIMAL.replace("openai/", ""), 6, 1, "model.handle can not be 'gpt-4o'"),
    "time zone": (
        MINIMAL.replace("[model]", 'timezone = "Europe/Olso"\n[model]'),
        5,
        1,
        "did you mean 'Europe/Oslo'?",
    ),
    "second label": (MINIMAL + BLOCK + BLOCK, 13, 1, "a second block is labelled 'a'"),
    "long seed": (
        MINIMAL + BLOCK + 'seed = "12345678901"\n',
        11,
        1,
        "has 11 characters, its limit is 10",
    ),
    "bad label": (MINIMAL + BLOCK.replace('"a"', '"a b"'), 9, 1, "'a b' is not a label"),
    "unknown writer": (MINIMAL + BLOCK + 'writers = ["ren"]\n', 11, 1, "'agent', 'client'"),
    "unknown built-in": (
        MINIMAL + '[tools]\nbuiltin = ["web_serch"]\n',
        8,
        1,
        "did you mean 'web_search'?",
    ),
    "childless rule": (
        MINIMAL + '[[tool_rules]]\ntype = "constrain_child_tools"\ntool_name = "a"\n',
        7,
        3,
        "needs children",
    ),
    "no prompt": (MINIMAL + "[system]\n", 7, 2, "give file, text, or rules"),
    "empty phrase": (MINIMAL + BLOCK + 'must_contain = ["*"]\n', 11, 1, "can not be '*'"),
    "seed without its phrase": (
        MINIMAL + BLOCK + 'seed = "b"\nmust_contain = ["c"]\n',
        12,
        1,
        "the declared text does not contain 'c'",
    ),
    "seed with a forbidden phrase": (
        MINIMAL + BLOCK + 'seed = "b"\nmust_not_contain = ["b"]\n',
        12,
        1,
        "the declared text contains 'b'",
    ),
    "prompt without its phrase": (
        MINIMAL + '[system]\ntext = "b"\nmust_contain = ["c"]\n',
        9,
        1,
        "the declared text does not contain 'c'",
    ),
    "two prompts": (MINIMAL + '[system]\nfile = "a"\ntext = "b"\n', 7, 2, "either file or text"),
    "no prompt file": (MINIMAL + '[system]\nfile = "none.md"\n', 8, 1, "can not be read"),
    "nameless person": (MINIMAL.replace("Robin", "---"), 3, 1, "no letter or digit"),
    "second of many blocks": (
        MINIMAL + BLOCK + BLOCK.replace('"a"', '"b"') + "lmit = 3\n",
        15,
        1,
        "did you mean 'limit'?",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_sentence_with_line_and_column(name: str, tmp_path: Path) -> None:
    text, line, column, words = FAULTS[name]
    path = write(tmp_path, text)

    with pytest.raises(SpecError) as caught:
        specs.load_spec(path)

    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"{path}:{line}:{column}: ")
    assert words in str(caught.value)
    assert caught.value.exit_code == 2


def test_several_faults_name_the_first_and_count_the_others(tmp_path: Path) -> None:
    path = write(tmp_path, MINIMAL + "max_tokens = 0\ntemperature = 9\n")

    with pytest.raises(SpecError, match=r":7:1: model.max_tokens.*\(and 1 more\)"):
        specs.load_spec(path)


def test_a_file_that_is_not_there_says_which_setting_to_mend(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"No such file.*HAN_SOLO_AGENT_SPEC"):
        specs.load_spec(tmp_path / "none.toml")


def test_a_file_that_is_not_utf8_says_where(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_bytes(b'[agent]\nname = "\xff"\n')

    with pytest.raises(SpecError, match="not UTF-8") as caught:
        specs.load_spec(path)

    assert (caught.value.line, caught.value.column) == (2, 9)
