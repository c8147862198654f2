"""What the real Letta stores as a tool's schema is what we compute, for every kind of schema."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
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


def _random_node(pick: random.Random, depth: int = 0) -> dict[str, Any]:
    kinds = ["text", "number", "object", "array", "anyOf", "oneOf", "reference", "enum", "any"]
    kind = pick.choice(kinds if depth < 4 else ["text", "reference"])
    node: dict[str, Any] = {
        key: value
        for key, value in (("description", "d"), ("default", None), ("title", "T"))
        if pick.random() < 0.25
    }
    match kind:
        case "text" | "number":
            node["type"] = {"text": "string", "number": pick.choice(["integer", "number"])}[kind]
            if pick.random() < 0.3:
                node["format"] = pick.choice(["date", "uri"])
        case "object":
            node |= _random_object(pick, depth + 1)
        case "array":
            node["type"] = "array"
            if pick.random() < 0.9:
                node["items"] = _random_node(pick, depth + 1)
        case "anyOf" | "oneOf":
            node[kind] = [_random_node(pick, depth + 1) for _ in range(pick.randint(1, 4))]
        case "reference":
            node["$ref"] = f"#/{pick.choice(['$defs', 'definitions'])}/{pick.choice('ABZ')}"
        case "enum":
            node |= {"enum": ["a", "b"], "type": pick.choice(["string", ["string", "null"]])}
    return node


def _random_object(pick: random.Random, depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "object"}
    if pick.random() < 0.8:
        node["properties"] = _random_properties(pick, depth)
    if pick.random() < 0.3:
        node["additionalProperties"] = pick.choice([True, False, {"type": "string"}])
    return node


def _random_properties(pick: random.Random, depth: int) -> dict[str, Any]:
    return {f"p{n}": _random_node(pick, depth) for n in range(pick.randint(0, 4))}


def _random_schema(pick: random.Random) -> dict[str, Any]:
    properties = _random_properties(pick, 0)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if pick.random() < 0.7:
        schema["$defs"] = {name: _random_node(pick, 1) for name in "AB"}
    if pick.random() < 0.5:
        schema["required"] = list(properties)[:2]
    return schema


def test_lettas_own_code_makes_the_computed_schema_of_any(
    letta_server: Any, tmp_path: Path
) -> None:
    pick = random.Random(20)
    sources = [_random_schema(pick) for _ in range(2_000)]
    answer = subprocess.run(
        [str(letta_server.python), str(Path(__file__).with_name("schema_oracle.py"))],
        input="\n".join(json.dumps(source) for source in sources),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,  # Letta writes where it stands, and into its home
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
    )
    lines = [line for line in answer.stdout.splitlines() if line.startswith("stored: ")]
    stored = [json.loads(line.removeprefix("stored: ")) for line in lines]
    assert len(stored) == len(sources)
    for source, made in zip(sources, stored, strict=True):
        assert schemas.expected_json_schema("n", "d", source) == made
