"""A text in the user's own editor, in a private file that is kept when the text finds no place."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ..blocks.model import BlockState, BlockWrite
from ..errors import BlockRefused, HanSoloError, SettingsError, UsageError
from . import run
from .block_text import decode

EDITORS: Final = ("VISUAL", "EDITOR")
FALLBACK: Final = "vi"
"""POSIX promises it."""


class Draft:
    """A text in a file of its own, which only the user can read."""

    def __init__(self, label: str, text: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="han-solo-edit-"))  # 0700
        self.path = self.folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', label)[:80] or 'block'}.md"
        self.before = text
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))

    async def edit(self) -> str:
        """Open the editor, wait for it, and return the text that it leaves.

        Editors end the last line even of a text that did not end with one; such a line end is not
        taken for a change.

        Raises:
            SettingsError: there is no editor.
            UsageError: it failed, or what it left is not UTF-8.
        """
        command = find_editor()
        with _interrupts_left_to_editor():
            process = await asyncio.create_subprocess_exec(*command, str(self.path))
            code = await process.wait()
        if code:
            raise UsageError(
                f"The editor {command[0]} ended with code {code}.", hint="Nothing was written."
            )
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise UsageError(
                f"The editor left no file at {self.path}: {error.strerror}.",
                hint="Nothing was written.",
            ) from error
        text = decode(data, str(self.path))
        if text.endswith("\n") and not self.before.endswith("\n"):
            text = text.removesuffix("\n").removesuffix("\r")
        return text

    def holds_work(self) -> bool:
        """Say whether there is something in the file that is nowhere else."""
        try:
            return self.path.read_bytes() != self.before.encode("utf-8")
        except OSError:
            return False

    def drop(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def keep_draft(label: str, text: str) -> Iterator[Draft]:
    """Make a draft; it is removed unless an error would lose what was written in it."""
    draft = Draft(label, text)
    try:
        yield draft
    except BaseException as error:
        kept = f"Your text is kept in {draft.path}."
        if not draft.holds_work():
            draft.drop()
        elif isinstance(error, HanSoloError):
            error.hint = f"{error.hint} {kept}" if error.hint else kept
        else:
            run.err().print(kept, soft_wrap=True, markup=False)
        raise
    draft.drop()


@contextmanager
def _interrupts_left_to_editor() -> Iterator[None]:
    """Let Ctrl-C reach the editor alone: it is a key there, and must not end the edit."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def find_editor() -> list[str]:
    """Return the user's editor as a command.

    Raises:
        SettingsError: it is not there.
    """
    for name in EDITORS:
        words = shlex.split(os.environ.get(name, ""))
        if words:
            break
    else:
        name, words = "EDITOR", [FALLBACK]
    if shutil.which(words[0]) is None:
        raise SettingsError(
            f"There is no editor {words[0]!r}.",
            hint=f"Set {name} to one that is there, such as nano.",
        )
    return words


def require_editable(state: BlockState) -> None:
    """Refuse before the editor opens what would be refused after it."""
    if state.view.read_only:
        raise BlockRefused(
            f"The core block {state.label!r} is read-only.",
            reason="read_only",
            hint="Change read_only in the agent spec and run sync-tools.",
        )
    if "operator" not in state.writers:
        raise BlockRefused(
            f"The core block {state.label!r} is written by {' and '.join(state.writers)} only.",
            reason="not_a_writer",
            hint="The agent spec says who may (writers).",
        )


def build_unchanged(state: BlockState) -> BlockWrite:
    """Build the outcome of an edit that left the text as it was."""
    return BlockWrite(
        label=state.label,
        block_id=state.view.id,
        version=state.version or 0,
        changed=False,
        sha256=state.sha256,
        length=state.length,
        limit=state.limit,
    )
