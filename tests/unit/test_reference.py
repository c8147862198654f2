"""The reference pages are what the code says, and every tool says what a page needs."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from han_solo.bridge.projection import project
from han_solo.cli import reference, tools
from han_solo.cli.reference_tools import build_page, describe_type
from han_solo.loader import load_registry, shipped_root
from han_solo.settings import Settings

from . import bridge_fakes as fakes


@pytest.fixture(scope="module")
def pages():
    return reference.build_pages()


def test_reference_pages_are_what_would_be_written():
    stale = reference.find_stale(shipped_root() / "docs" / "reference")
    assert not stale, "run `han-solo reference`"


def test_a_page_that_is_missing_or_differs_is_stale(tmp_path, pages):
    assert {path.name for path in reference.find_stale(tmp_path)} == set(pages)
    for name, text in pages.items():
        (tmp_path / name).write_text(text)
    assert reference.find_stale(tmp_path) == []
    (tmp_path / "tools.md").write_text(pages["tools.md"] + "\n")
    assert reference.find_stale(tmp_path) == [tmp_path / "tools.md"]


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_every_setting_is_on_its_page(pages, name):
    assert f"## HAN_SOLO_{name.upper()}\n" in pages["settings.md"]


def test_every_tool_and_argument_is_on_the_page():
    page = build_page(fakes.registry())
    for spec in fakes.SPECS:
        assert f"### {spec.name}\n" in page
    assert "| `text` | string, at most 20 characters | required |" in page
    assert '| `shade` | `"light"`, `"dark"` | `"light"` | How bright it is. |' in page


@pytest.mark.parametrize("spec", load_registry().tools, ids=lambda spec: spec.name)
def test_every_shipped_tool_describes_each_argument(spec):
    listed = project(spec)
    for name, schema in listed.input_schema["properties"].items():
        assert schema.get("description"), f"{spec.source}: no Args entry for {name}"


@pytest.mark.parametrize("spec", load_registry().tools, ids=lambda spec: spec.name)
def test_no_shipped_tool_is_described_at_a_length_that_crowds_the_prompt(spec):
    assert len(project(spec).description) <= 1500


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 9}, "integer, at least 1, at most 9"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 3},
         "list of string, at most 3 items"),
        ({"const": 1}, "`1`"),
        ({}, "any"),
    ],
)  # fmt: skip
def test_a_type_is_said_in_words(schema, words):
    assert describe_type(schema) == words


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a runner of ``tools`` with an operator's own directory set."""
    own = tmp_path / "own" / "tools"
    own.mkdir(parents=True)
    (own / "mine.py").write_text(
        "from han_solo import MemoryContext, tool\n"
        '@tool(effect="read", audience="client")\n'
        "async def my_tool(context: MemoryContext, word: str) -> str:\n"
        '    """Say a [word].\n\n    Args:\n        word: The word.\n    """\n'
        "    return word\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAN_SOLO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HAN_SOLO_EXTENSIONS", str(tmp_path / "own"))
    app = typer.Typer()
    app.add_typer(tools.app, name="tools")
    app.command("other")(lambda: None)  # a lone group would be run without its name
    wide = {"COLUMNS": "120"}  # so that no cell is folded
    return lambda *arguments: CliRunner().invoke(app, ["tools", *arguments], env=wide)


def test_tools_lists_the_operators_own_too(run):
    result = run()
    assert result.exit_code == 0
    [line] = [line for line in result.output.splitlines() if line.startswith("my_tool")]
    assert line.split() == ["my_tool", "client,", "operator", "read", "memory:read", "mine"]


def test_tools_show_prints_description_and_schema(run):
    result = run("show", "my_tool")
    assert result.exit_code == 0
    assert "Say a [word]." in result.output
    assert '"description": "The word."' in result.output


def test_an_unknown_tool_is_said_with_the_nearest_name(run):
    result = run("show", "my_toll")
    assert result.exit_code == 2
    assert "There is no tool 'my_toll'." in result.output
    assert "Did you mean my_tool" in result.output
