"""The content of a message as one text: what was said, called and returned, pictures left out."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Final

from .shape import Block, Source

_LONG_BASE64: Final = 512
"""Shorter data is no picture, and costs nothing."""

_BASE64: Final = re.compile(
    r'("(?:data|base64)"\s*:\s*)"(?:data:[\w/+.;=-]{1,100},)?([A-Za-z0-9+/]{512,}+)={0,2}"'
)

Content = str | list[Block | str] | None


def flatten(content: Content) -> tuple[str, frozenset[str]]:
    """Return the text of a content, and the types of its blocks."""
    if content is None:
        return "", frozenset()
    if isinstance(content, str):
        return content, frozenset()
    parts: list[str] = []
    types: set[str] = set()
    for block in content:
        if isinstance(block, str):
            parts.append(block)
            continue
        types.add(block.type)
        if text := _text(block):
            parts.append(text)
    return "\n".join(parts), frozenset(types)


def _text(block: Block) -> str:
    if block.text is not None:
        return block.text
    match block.type:
        case "thinking":
            return f"[thinking] {block.thinking or ''}"
        case "tool_use" | "server_tool_use":
            given = bytes(block.input).decode("utf-8", "replace") if block.input else ""
            return f"[calls {block.name or 'a tool'}{_call(block.id)}] {given}"
        case "image" | "document" if block.source is not None:
            return _describe(block.type, block.source)
    inner = flatten(block.content)[0]
    if block.type == "tool_result":
        what = "error" if block.is_error else "result"
        return f"[{what}{_call(block.tool_use_id)}] {inner}"
    return inner or f"[{block.type or 'block'}]"


def _call(id_: str | None) -> str:
    """Return the id that a call and its result share; results may come out of order."""
    return f" {id_}" if id_ else ""


def _describe(kind: str, source: Source) -> str:
    """Say what a picture or document is; its bytes are dropped."""
    try:
        data = base64.b64decode(source.data, validate=False)
    except (binascii.Error, ValueError):
        data = source.data.encode("utf-8", "replace")
    digest = hashlib.sha256(data).hexdigest()
    return f"[{kind} {source.media_type or source.type}, {len(data)} bytes, sha256 {digest}]"


def drop_base64(raw: str) -> str:
    """Leave the bytes of pictures and documents out of a record that is kept as it is."""
    if len(raw) < _LONG_BASE64 or not ('"data"' in raw or '"base64"' in raw):
        return raw
    return _BASE64.sub(_name_base64, raw)


def _name_base64(found: re.Match[str]) -> str:
    data = base64.b64decode(found[2] + "=" * (-len(found[2]) % 4))
    return f'{found[1]}"[{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}]"'
