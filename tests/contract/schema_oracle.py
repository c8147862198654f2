"""Prints what Letta's own code makes of each schema on stdin; run by Letta's Python, one a line."""

import json
import sys

from letta.functions.mcp_client.types import MCPTool
from letta.functions.schema_generator import generate_tool_schema_for_mcp, normalize_mcp_schema

MARK = "stored: "  # Letta's imports may print lines of their own

for line in sys.stdin:
    tool = MCPTool(name="n", description="d", inputSchema=json.loads(line))
    tool.inputSchema = normalize_mcp_schema(tool.inputSchema)
    sys.stdout.write(MARK + json.dumps(generate_tool_schema_for_mcp(tool)) + "\n")
