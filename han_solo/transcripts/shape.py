"""What a line of a transcript looks like, as far as it is read; everything else in it is skipped.

Fields whose shape differs from one release of Claude Code to the next are kept as raw bytes and
looked at only when they are needed, so a new shape of one of them never costs the line.
"""

from __future__ import annotations

from typing import Final

import msgspec

EMPTY: Final = msgspec.Raw(b"")


class Record(msgspec.Struct, gc=False):
    """One record. ``type`` is missing in very old ones."""

    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None
    sessionId: str | None = None
    agentId: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    gitBranch: str | None = None
    version: str | None = None
    isSidechain: bool | None = False
    isMeta: bool | None = False
    isCompactSummary: bool | None = False
    operation: str | None = None
    summary: str | None = None
    customTitle: str | None = None
    aiTitle: str | None = None
    agentName: str | None = None
    message: msgspec.Raw = EMPTY
    content: msgspec.Raw = EMPTY
    attachment: msgspec.Raw = EMPTY


class Source(msgspec.Struct, gc=False):
    """Where the bytes of a picture or a document come from."""

    type: str = ""
    media_type: str = ""
    data: str = ""


class Block(msgspec.Struct, gc=False):
    """One block of a message's content."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    name: str | None = None
    id: str | None = None
    tool_use_id: str | None = None
    input: msgspec.Raw = EMPTY
    content: str | list[Block | str] | None = None
    is_error: bool | None = None
    source: Source | None = None


class Usage(msgspec.Struct, gc=False):
    """Tokens of one API message; it is repeated on each of the lines that the message spans."""

    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0


class Message(msgspec.Struct, gc=False):
    """The message of a user's or an assistant's record."""

    role: str | None = None
    id: str | None = None
    model: str | None = None
    content: str | list[Block | str] | None = None
    usage: Usage | None = None


class Attachment(msgspec.Struct, gc=False):
    """An attachment; a prompt that was typed while a tool ran lives only here."""

    type: str = ""
    prompt: str | list[Block | str] | None = None


record_decoder: Final = msgspec.json.Decoder(Record)
message_decoder: Final = msgspec.json.Decoder(Message)
attachment_decoder: Final = msgspec.json.Decoder(Attachment)
content_decoder: Final = msgspec.json.Decoder(str | list[Block | str])
