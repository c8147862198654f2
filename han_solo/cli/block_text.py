"""Texts of blocks on their way in and out: read to the byte, shown so that no terminal obeys."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from ..errors import UsageError

_SHOWN: Final = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"} | {
    0x7F: "\u2421",
    **{code: f"<{code:02x}>" for code in range(0x80, 0xA0)},
}
"""Control characters and how they are shown: an agent may write whatever it likes into a block,
also what makes a terminal do things."""


def visible(text: str) -> str:
    """Return the text with its control characters made visible; line ends and tabs stay."""
    return text.translate(_SHOWN)


def say(console: Console, line: str | Text, *, style: str | None = None) -> None:
    """Print a line: folded between words on a terminal, whole into a pipe."""
    console.print(line, style=style, markup=False, emoji=False, soft_wrap=not console.is_terminal)


def read_text(source: str | None) -> str:
    """Read a whole text from a file, or from stdin for ``-`` and for nothing; to the byte.

    Raises:
        UsageError: there is no such file, it can not be read, or it is not UTF-8.
    """
    if source in {None, "-"}:
        if sys.stdin.isatty():
            raise UsageError(
                "There is no text to write.",
                hint="Name a file, pipe the text in, or use `han-solo blocks edit`.",
            )
        return decode(sys.stdin.buffer.read(), "What came on stdin")
    path = Path(str(source))
    try:
        return decode(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(f"{path} can not be read: {error.strerror}.") from error


def decode(data: bytes, what: str) -> str:
    """Decode UTF-8, strictly: a byte that is replaced would be a change nobody made."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{what} is not UTF-8: byte {data[error.start]:#04x} at position {error.start:,}.",
            hint="Convert it first; nothing was written.",
        ) from error
