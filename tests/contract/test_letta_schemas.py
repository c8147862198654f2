"""What the real Letta stores as a tool's schema is what we compute, for every kind of schema."""

from __future__ import annotations

from typing import Any

from han_solo.letta import schemas
from han_solo.letta.gateway import LettaGateway
from tests.contract.mcp_stub import McpStub, StubTool, serve

POINT = {
    "type": "object",
    "description": "A point.",
    "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0}},
    "required": ["x"],
}
COLOUR = {"type": "string", "enum": ["red", "green"]}
DEFS = {"$defs": {"Point": POINT, "Colour": COLOUR}}
TO_POINT = {"$ref": "#/$defs/Point"}

SCHEMAS: dict[str, dict[str, Any]] = {
    "no_properties": {"type": "object"},
    "no_arguments": {"type": "object", "properties": {}},
    "optional": {
        "type": "object",
        "title": "Arguments",
        "properties": {
            "text": {"type": "string", "description": "The text, 1 to 4,000 characters."},
            "limit": {"type": "integer", "default": 20, "minimum": 1, "maximum": 100},
        },
        "required": ["text"],
    },
    "nullable": {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "b": {"type": ["string", "null"]},
        },
    },
    "enums": {
        "type": "object",
        "properties": {"a": {"enum": ["x", "y"], "type": "string"}, "b": {"const": 1}},
    },
    "same_types": {
        "type": "object",
        "properties": {
            "when": {
                "anyOf": [
                    {"type": "string"},
                    {"type": "string", "format": "date"},
                    {"type": "string", "format": "date-time"},
                    {"type": "null"},
                ]
            },
            "tags": {
                "anyOf": [
                    {"type": "array", "items": {"type": "string"}},
                    {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
                ]
            },
        },
    },
    "nested": {
        "type": "object",
        "properties": {
            "o": {"type": "object", "properties": {"p": POINT}, "required": ["p"]},
            "open": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["o"],
    },
    "arrays": {
        "type": "object",
        "properties": {
            "words": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
            "points": {"type": "array", "items": POINT},
            "loose": {"type": "array"},
        },
        "required": ["words", "loose"],
    },
    "references": {
        **DEFS,
        "type": "object",
        "properties": {
            "p": TO_POINT,
            "many": {"type": "array", "items": TO_POINT},
            "maybe": {"anyOf": [TO_POINT, {"type": "null"}], "description": "Perhaps."},
            "colour": {"$ref": "#/$defs/Colour", "default": "red"},
        },
        "required": ["p"],
        "additionalProperties": False,
    },
    "references_in_definitions": {
        "$defs": {
            "Point": POINT,
            "Line": {"type": "object", "properties": {"from": TO_POINT, "to": TO_POINT}},
        },
        "type": "object",
        "properties": {"line": {"$ref": "#/$defs/Line"}},
    },
    "reference_to_itself": {
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
            }
        },
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}},
    },
    "references_to_nothing": {
        **DEFS,
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/Absent"}, "b": {"$ref": "#/definitions/Point"}},
    },
    "anything": {"type": "object", "properties": {"a": {}, "b": {"description": "Any."}}},
    "choices": {"type": "object", "properties": {"a": {"oneOf": [COLOUR, {"type": "integer"}]}}},
    "open_object": {"type": "object", "properties": {}, "additionalProperties": True},
    "not_ascii": {
        "type": "object",
        "properties": {"é": {"type": "string", "description": "Zürich, 東京 \U0001f600"}},
    },
}


async def test_each_stored_schema_is_the_computed_one(
    letta_server: Any, gateway: LettaGateway
) -> None:
    tools = [
        StubTool(name, f"Describes {name}.\n\n  Indented: “quotes”.", schema)
        for name, schema in SCHEMAS.items()
    ]
    async with serve(McpStub(tools), letta_server.bridge_ports[0]) as stub:
        await gateway.register_mcp_server("han-solo", stub.url, None)
        # Registering a server leaves out what Letta calls invalid; one by one, all are taken.
        at_once = {tool.name for tool in await gateway.fetch_tools() if tool.mcp_server}
        assert SCHEMAS.keys() - at_once == {"arrays", "anything", "enums"}
        for name in SCHEMAS:
            await gateway.register_tool("han-solo", name)
    stored = {tool.name: tool for tool in await gateway.fetch_tools() if tool.mcp_server}
    assert stored.keys() == SCHEMAS.keys()
    for tool in tools:
        expected = schemas.expected_json_schema(tool.name, tool.description, tool.input_schema)
        assert schemas.comparable(stored[tool.name].json_schema) == expected
        assert schemas.digest(stored[tool.name].json_schema) == schemas.digest(expected)
        assert stored[tool.name].description == tool.description
