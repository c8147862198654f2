"""The fingerprint of a tool: a hash over name, description and schema, in the form Letta stores.

What the bridge or the registry lists is first turned into what Letta would store of it, so that the
two sides can be compared; a difference means that Letta's copy is stale.
"""

from __future__ import annotations

from ..letta import schemas
from ..letta.views import MCP_TAG_PREFIX, RETURN_CHAR_LIMIT, ToolView
from ..registry import ListedTool


def fingerprint_listed(tool: ListedTool) -> str:
    """Return the fingerprint that Letta's copy of a listed tool must have."""
    expected = schemas.expected_json_schema(tool.name, tool.description, tool.input_schema)
    return schemas.digest(expected)


def fingerprint_stored(tool: ToolView) -> str:
    """Return the fingerprint of Letta's copy of a tool.

    Letta routes a call by the tag of the server, whatever the metadata say: a tool that lost it, or
    bears another server's, is stale however well its schema stands. So is one whose answers wait
    for an approval that nobody gives, or are cut where those of a new one are not; registering it
    again puts all three right.
    """
    tag = f"{MCP_TAG_PREFIX}{tool.mcp_server}"
    if [found for found in tool.tags if found.startswith(MCP_TAG_PREFIX)] != [tag]:
        return "no valid server tag"
    if tool.requires_approval:
        return "it asks for an approval"
    if tool.return_char_limit != RETURN_CHAR_LIMIT:
        return "another limit of what it returns"
    return fingerprint_schema(tool)


def fingerprint_schema(tool: ToolView) -> str:
    """Return the fingerprint of the schema alone: what is left of a tool that lost its marks."""
    return schemas.digest(tool.json_schema)
