"""From the bytes of a transcript to rows. Pure; the same rows however the bytes are cut.

The common line takes one typed decode, one of its message, and a hash. Whatever does not fit goes
the slow way round (``salvage``), alone: a damaged line costs no line beside it. The last line may
still be being written, so it counts only when it ends, or is a whole object.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import blake2b
from typing import Final

import msgspec

from .content import drop_base64, flatten
from .errors import BadMessage
from .model import SIDE, Damage, Kind, Parsed, Row
from .redact import SHAPES, Shape, find_shapes, redact
from .salvage import Salvage
from .shape import (
    EMPTY,
    Message,
    Record,
    Usage,
    attachment_decoder,
    content_decoder,
    message_decoder,
    record_decoder,
)

EVENTS: Final = frozenset(
    """
    agent-setting atis-latch bridge-session file-history-snapshot last-prompt mode permission-mode
    pr-link progress result saved_hook_context started turn_end worktree-state
    """.split()
)
"""Known types that say nothing by themselves."""

MAX_ID_CHARS: Final = 150
"""Ids are 36 characters; what is longer comes of damage. An index takes 2,700 bytes in all."""

_MAX_TOKENS: Final = 2**53
_YEARS: Final = range(2000, 2200)
"""A time outside is damage; the first and last years have no UTC in every zone."""

_FAULTS: Final = (msgspec.MsgspecError, UnicodeDecodeError, BadMessage, RecursionError)
"""What a line can do to the fast way; nesting without end is the last."""

_TITLES: Final = frozenset({"custom-title", "ai-title", "agent-name"})
_SPEAKS: Final = frozenset({"user", "assistant"})


def parse(data: bytes, base: int = 0) -> Parsed:
    """Parse a piece of a file.

    Args:
        data: the bytes from ``base`` on, to the end of what is there.
        base: where in the file they begin.
    """
    found = Parsed()
    shapes = find_shapes(data)
    may_have_nul = b"\\u0000" in data
    at = 0
    end = len(data)
    while at < end:
        stop = data.find(b"\n", at)
        if stop < 0:
            if not _is_whole(data[at:]):
                break
            stop = end
        line = data[at:stop]
        if line and not line.isspace():
            _parse_line(line, base + at, found, shapes, may_have_nul=may_have_nul)
        at = stop + 1
    found.consumed = min(at, end)
    return found


def _is_whole(line: bytes) -> bool:
    """Say whether an unfinished line is an object that ends."""
    text = line.strip()
    if not text.startswith(b"{") or not text.endswith(b"}"):
        return False
    try:
        msgspec.json.decode(text)
    except _FAULTS:
        return False
    return True


def _parse_line(
    line: bytes, offset: int, found: Parsed, shapes: tuple[Shape, ...], *, may_have_nul: bool
) -> None:
    try:
        record = record_decoder.decode(line)
        row = build_row(record, line, offset, shapes)
        found.rows.append(clean(row, found) if may_have_nul and b"\\u0000" in line else row)
    except _FAULTS:
        Salvage(offset, found, build_row, clean).take(line)


def build_row(record: Record, line: bytes, offset: int, shapes: tuple[Shape, ...] = SHAPES) -> Row:
    """Build the row of a record.

    Raises:
        BadMessage: it should have a message and has none that can be read.
        msgspec.MsgspecError, RecursionError: a part of it has not its shape.
    """
    kind: Kind
    text, raw, subtype = "", None, record.subtype or ""
    message: Message | None = None
    kind_of = record.type
    if kind_of in _SPEAKS or (not kind_of and record.message is not EMPTY):
        message = _decode_message(record)
        kind, text = _of_message(record, message, kind_of or message.role or "user")
    elif kind_of == "attachment":
        attachment = attachment_decoder.decode(
            b"{}" if record.attachment is EMPTY else record.attachment
        )
        subtype = attachment.type
        kind = "queued_prompt" if subtype == "queued_command" else "attachment"
        text = flatten(attachment.prompt)[0]
        raw = None if kind == "queued_prompt" else _text_of(line)
    elif kind_of == "queue-operation":
        subtype = record.operation or ""
        text = (
            flatten(content_decoder.decode(record.content))[0]
            if record.content is not EMPTY
            else ""
        )
        kind = "queued_prompt" if subtype == "enqueue" and text else "event"
    elif kind_of == "summary":
        # It may be of another session: the record says which leaf it ends at.
        kind, text, raw = "summary", record.summary or "", _text_of(line)
    elif kind_of in _TITLES:
        kind, subtype = "title", kind_of
        text = record.customTitle or record.aiTitle or record.agentName or ""
        raw = None if text else _text_of(line)
    elif kind_of == "system":
        kind = "system"
        text, raw = _plain(record.content), _text_of(line)
    elif kind_of in EVENTS:
        kind, subtype, raw = "event", kind_of, _text_of(line)
    else:
        kind, subtype, raw = "unknown", kind_of, _text_of(line)
    text, redacted = redact(text, shapes)
    if raw is not None:
        raw, more = redact(drop_base64(raw), shapes)
        redacted += more
    usage = message.usage if message else None
    return Row(
        offset,
        len(line),
        _id(record.sessionId),
        _id(record.agentId) or (SIDE if record.isSidechain else None),
        _id(record.uuid),
        _id(record.parentUuid),
        kind,
        subtype[:MAX_ID_CHARS],
        _moment(record.timestamp),
        record.cwd,
        text,
        raw,
        _digest(record, line),
        _id(message.id) if message else None,
        _id(message.model) if message else None,
        _tokens(usage) if usage else None,
        redacted,
    )


def clean(row: Row, found: Parsed) -> Row:
    """Take NULs out of a row's texts, which Postgres refuses, and count that."""
    texts = {
        name: value.replace("\x00", "")
        for name, value in row._asdict().items()
        if isinstance(value, str) and "\x00" in value
    }
    if texts:
        found.damage.append(Damage(row.offset, "nul_in_text"))
    return row._replace(**texts)  # type: ignore[arg-type]


def _decode_message(record: Record) -> Message:
    if record.message is EMPTY:
        raise BadMessage
    message = message_decoder.decode(record.message)
    if message.content is None:
        raise BadMessage
    return message


def _of_message(record: Record, message: Message, speaker: str) -> tuple[Kind, str]:
    text, types = flatten(message.content)
    if speaker == "assistant":
        if "text" in types or not types:
            return "answer", text
        return ("tool_call" if types & {"tool_use", "server_tool_use"} else "thinking"), text
    if record.isCompactSummary:
        return "compact_summary", text
    if "tool_result" in types:
        return "tool_result", text
    return ("meta" if record.isMeta else "prompt"), text


def _digest(record: Record, line: bytes) -> bytes:
    """Return the hash of what a record says: the same when it is copied into another session."""
    digest = blake2b(record.type.encode(), digest_size=16)
    if record.uuid and record.message is not EMPTY:
        digest.update(record.message)
    else:
        digest.update(line)
    return digest.digest()


def _id(value: str | None) -> str | None:
    return value if value is None or len(value) <= MAX_ID_CHARS else value[:MAX_ID_CHARS]


def _tokens(usage: Usage) -> tuple[int, int, int, int]:
    return (
        _count(usage.input_tokens),
        _count(usage.output_tokens),
        _count(usage.cache_creation_input_tokens),
        _count(usage.cache_read_input_tokens),
    )


def _count(tokens: int | None) -> int:
    if tokens is None or 0 <= tokens <= _MAX_TOKENS:
        return tokens or 0
    return _MAX_TOKENS if tokens > 0 else 0


def _plain(content: msgspec.Raw) -> str:
    """Return a content that is a text; anything else is in the raw record."""
    if content is EMPTY:
        return ""
    found = msgspec.json.decode(content)
    return found if isinstance(found, str) else ""


def _text_of(line: bytes) -> str:
    return line.decode("utf-8").strip()


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo and found.year in _YEARS else None
