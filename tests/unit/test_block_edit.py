"""A draft in an editor: private, to the byte, and kept when its text found no place."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from han_solo.cli.block_edit import Draft, find_editor, keep_draft
from han_solo.cli.block_text import decode, read_text
from han_solo.errors import BlockRefused, SettingsError, UsageError


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("VISUAL", raising=False)


def use_editor(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Make Python code the editor; ``path`` is the file."""
    script = f"import sys, pathlib; path = pathlib.Path(sys.argv[1]); {code}"
    quoted = script.replace('"', '\\"')
    monkeypatch.setenv("EDITOR", f'"{sys.executable}" -c "{quoted}"')


@pytest.mark.parametrize("text", ["", "a\r\nb  \n\n", "\ufeffBOM", "no end", "é👩\u200d🚀\n"])
async def test_a_text_that_was_not_touched_comes_back_to_the_byte(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    use_editor(monkeypatch, "path.write_bytes(path.read_bytes())")
    assert await Draft("notes", text).edit() == text


async def test_the_line_end_that_an_editor_adds_is_no_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_editor(monkeypatch, "path.write_bytes(path.read_bytes() + b'\\n')")
    assert await Draft("notes", "no end").edit() == "no end"
    assert await Draft("notes", "an end\n").edit() == "an end\n\n"


async def test_only_the_user_can_read_the_draft() -> None:
    draft = Draft("a label/../x", "secret")
    assert stat.S_IMODE(draft.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(draft.folder.stat().st_mode) == 0o700
    assert draft.path.parent == draft.folder
    assert draft.path.name == "a_label_.._x.md"


async def test_an_editor_that_fails_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    use_editor(monkeypatch, "sys.exit(3)")
    with pytest.raises(UsageError, match="ended with code 3"):
        await Draft("notes", "text").edit()


async def test_an_editor_that_leaves_other_bytes_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_editor(monkeypatch, "path.write_bytes(b'ab\\xff')")
    with pytest.raises(UsageError, match="not UTF-8: byte 0xff at position 2"):
        await Draft("notes", "text").edit()


async def _edit_and_raise(error: BaseException) -> None:
    with keep_draft("notes", "text") as draft:
        await draft.edit()
        raise error


async def test_a_refused_text_is_kept_and_its_place_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_editor(monkeypatch, "path.write_text('mine')")
    refusal = BlockRefused("No.", reason="version_conflict", hint="Read it again.")
    with pytest.raises(BlockRefused):
        await _edit_and_raise(refusal)
    (path,) = tmp_path.glob("*/notes.md")
    assert refusal.hint == f"Read it again. Your text is kept in {path}."
    assert path.read_text() == "mine"


async def test_an_end_of_any_kind_keeps_the_text_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    use_editor(monkeypatch, "path.write_text('mine')")
    with pytest.raises(SystemExit):
        await _edit_and_raise(SystemExit())
    assert [path.read_text() for path in tmp_path.glob("*/notes.md")] == ["mine"]
    assert "Your text is kept in" in capsys.readouterr().err


async def test_nothing_is_left_behind_when_all_went_well_or_nothing_was_written(
    tmp_path: Path,
) -> None:
    with keep_draft("notes", "text"):
        pass
    with pytest.raises(UsageError), keep_draft("notes", "text"):
        raise UsageError("No.")
    assert list(tmp_path.iterdir()) == []


def test_visual_comes_before_editor_and_both_may_have_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EDITOR", "no-such-editor")
    monkeypatch.setenv("VISUAL", f"'{sys.executable}' -u")
    assert find_editor() == [sys.executable, "-u"]


def test_an_editor_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "no-such-editor --wait")
    with pytest.raises(SettingsError, match="no editor 'no-such-editor'") as caught:
        find_editor()
    assert "Set EDITOR" in str(caught.value.hint)


def test_a_file_is_read_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("\ufeffa\r\nb ".encode())
    assert read_text(str(path)) == "\ufeffa\r\nb "
    with pytest.raises(UsageError, match="can not be read"):
        read_text(str(tmp_path))
    with pytest.raises(UsageError, match="position 1,000"):
        decode(b"x" * 1000 + b"\xc3", "It")
