"""Extension packages: what is found, what is refused, and that nothing half is loaded."""

from __future__ import annotations

import os
import sys

import pytest

from han_solo.errors import DeclarationError
from han_solo.loader import load_registry, shipped_root

TOOL = '''
from han_solo import MemoryContext, tool

@tool(effect="read")
async def {name}(context: MemoryContext) -> str:
    """Say {said}."""
    return "{said}"
'''


@pytest.fixture
def own(tmp_path):
    """Return an operator's own directory with one tool in it."""
    root = tmp_path / "own"
    (root / "tools").mkdir(parents=True)
    write(root / "tools" / "mine.py", TOOL.format(name="my_tool", said="hello"))
    return root


def write(path, text):
    path.write_text(text)
    path.chmod(0o644)


def names(*roots):
    return {spec.name for spec in load_registry(roots)}


def test_own_directory_is_loaded_beside_the_shipped_one(own):
    assert names(own) - names() == {"my_tool"}


def test_shipped_folders_are_found_from_the_package_itself(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert (shipped_root() / "tools").is_dir()
    assert names() == names()


def test_a_family_is_named_after_its_file(own):
    spec = load_registry([own]).get("my_tool")
    assert spec.family == "mine"
    assert spec.source == f"{own / 'tools' / 'mine.py'}:4"


def test_helpers_are_imported_by_siblings_and_are_no_family(own):
    write(own / "tools" / "_words.py", "WORD = 'from the helper'\n")
    text = "from ._words import WORD\nfrom . import _words\nassert _words.WORD == WORD\n"
    write(own / "tools" / "mine.py", text + TOOL.format(name="my_tool", said="x"))
    assert "my_tool" in names(own)


def test_a_helper_that_changed_is_read_anew(own):
    helper = own / "tools" / "_words.py"
    check = "from ._words import NAME\nNAME == 'my_tool' or 1 / 0\n"
    write(own / "tools" / "mine.py", TOOL.format(name="my_tool", said="x") + check)
    write(helper, "NAME = 'my_tool'\n")
    assert "my_tool" in names(own)
    write(helper, "NAME = 'another, and longer'\n")
    with pytest.raises(DeclarationError, match="ZeroDivisionError"):
        load_registry([own])


def test_a_sibling_that_is_imported_is_loaded_once(own):
    write(own / "tools" / "a_first.py", "from .mine import my_tool\n")
    registry = load_registry([own])
    module = sys.modules[registry.get("my_tool").function.__module__]
    assert module.my_tool is registry.get("my_tool").function


def test_own_directories_of_one_file_name_do_not_meet(own, tmp_path):
    other = tmp_path / "other"
    (other / "tools").mkdir(parents=True)
    write(other / "tools" / "mine.py", TOOL.format(name="other_tool", said="x"))
    assert {"my_tool", "other_tool"} <= names(own, other)


def test_two_tools_of_one_name_in_two_files_are_refused(own):
    write(own / "tools" / "other.py", TOOL.format(name="my_tool", said="x"))
    with pytest.raises(DeclarationError, match="Two tools are named 'my_tool'") as caught:
        load_registry([own])
    assert "mine.py:4" in str(caught.value)
    assert "other.py:4" in str(caught.value)


def test_two_tools_of_one_name_in_one_file_are_refused(own):
    twice = TOOL.format(name="my_tool", said="x") + TOOL.format(name="my_tool", said="y")
    write(own / "tools" / "mine.py", twice)
    with pytest.raises(DeclarationError, match="Two tools are named 'my_tool'"):
        load_registry([own])


def test_a_tool_imported_from_a_sibling_counts_once(own):
    write(own / "tools" / "other.py", "from .mine import my_tool\n__all__ = ['my_tool']\n")
    assert "my_tool" in names(own)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("raise SystemExit(3)\n", "SystemExit"),
        (TOOL.format(name="core_memory_append", said="x"), "Letta built-in"),
        (TOOL.format(name="x", said="x").replace("MemoryContext", "OperatorContext"), "deadlock"),
    ],
)
def test_a_file_that_does_not_load_stops_everything_and_is_named(own, text, said):
    write(own / "tools" / "bad.py", text)
    with pytest.raises(DeclarationError, match=said) as caught:
        load_registry([own])
    assert "bad.py" in str(caught.value)


def test_guards_and_jobs_are_loaded_too(own):
    for kind in ("guards", "jobs"):
        (own / kind).mkdir()
        write(own / kind / "bad.py", "1 / 0\n")
        with pytest.raises(DeclarationError, match=f"{kind}/bad.py"):
            load_registry([own])
        (own / kind / "bad.py").unlink()


def test_a_directory_that_is_not_there_is_said(tmp_path):
    with pytest.raises(DeclarationError, match="does not exist") as caught:
        load_registry([tmp_path / "gone"])
    assert "HAN_SOLO_EXTENSIONS" in str(caught.value)


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
@pytest.mark.parametrize("place", [".", "tools"])
def test_a_directory_that_others_may_write_is_refused(own, place, mode):
    (own / place).chmod(mode)
    with pytest.raises(DeclarationError, match="may be written by others") as caught:
        load_registry([own])
    assert "chmod" in caught.value.hint


@pytest.mark.parametrize("name", ["mine.py", "_words.py", "_native.so"])
def test_a_file_that_others_may_write_is_refused(own, name):
    (own / "tools" / name).touch()
    (own / "tools" / name).chmod(0o646)
    with pytest.raises(DeclarationError, match="may be written by others"):
        load_registry([own])


def test_a_parent_that_others_may_write_is_refused_unless_it_is_sticky(own, tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(DeclarationError, match="may be written by others"):
        load_registry([own])
    tmp_path.chmod(0o1777)
    assert "my_tool" in names(own)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_directory_of_another_user_is_refused(own):
    os.chown(own, 12345, -1)
    with pytest.raises(DeclarationError, match="belongs to another user"):
        load_registry([own])


def test_a_link_out_of_the_directory_is_refused(own, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    write(outside / "theirs.py", TOOL.format(name="their_tool", said="x"))
    link = own / "tools" / "theirs.py"
    link.symlink_to(outside / "theirs.py")
    with pytest.raises(DeclarationError, match="leads out of"):
        load_registry([own])
    link.unlink()
    (own / "guards").symlink_to(outside)
    with pytest.raises(DeclarationError, match="leads out of"):
        load_registry([own])


def test_a_link_that_leads_nowhere_is_refused(own):
    (own / "tools" / "gone.py").symlink_to(own / "nothing.py")
    with pytest.raises(DeclarationError, match=r"gone\.py"):
        load_registry([own])


def test_a_link_inside_the_directory_will_do(own):
    (own / "tools" / "_words.py").symlink_to(own / "tools" / "mine.py")
    assert "my_tool" in names(own)


def test_the_directory_itself_may_be_a_link(own, tmp_path):
    (tmp_path / "link").symlink_to(own)
    assert "my_tool" in names(tmp_path / "link")


def test_a_file_in_jobs_without_a_job_is_refused(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "nightly.py").write_text('"""Nothing."""\nx = 1\n')

    with pytest.raises(DeclarationError, match=r"nightly\.py has no jobs; one module is one job"):
        load_registry([tmp_path])
