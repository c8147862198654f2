"""What a tool returns, as the one text that its caller reads.

Letta hands the model the text of a reply and drops structured content, so a reply is text only: a
string as it is, anything else as compact JSON. Tools declare no output schema for the same reason;
it would only make the list longer.
"""

from __future__ import annotations

import logging
from typing import Final

import pydantic_core
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult
from mcp_types import TextContent

from ..principals import Effect

MAX_REPLY_CHARS: Final = 40_000
"""Letta cuts a tool's return at 50,000 characters without a word; the rest is its own wrapping."""


def build_reply(value: object, *, name: str, effect: Effect) -> ToolResult:
    """Build the reply of the tool ``name``.

    Raises:
        ToolError: the text is longer than ``MAX_REPLY_CHARS``. It is refused and not cut, since a
            model takes what it reads for the whole.
    """
    if isinstance(value, ToolResult):
        return value
    text = value if isinstance(value, str) else _to_json(value)
    if len(text) > MAX_REPLY_CHARS:
        done = "" if effect == "read" else " What it wrote stays written."
        raise ToolError(
            f"The reply of {name} has {len(text):,} characters, more than the {MAX_REPLY_CHARS:,} "
            f"that a reply may have.{done} Ask for less of it: a smaller limit, or page by page.",
            log_level=logging.INFO,
        )
    return ToolResult(content=[TextContent(type="text", text=text)])


def _to_json(value: object) -> str:
    return pydantic_core.to_json(value, by_alias=True).decode()
