"""The schema that Letta stores is computed as Letta computes it; a contract test proves it."""

from __future__ import annotations

from typing import Any

import pytest

from han_solo.letta import schemas

BEAT = {"type": "boolean", "description": schemas.HEARTBEAT_DESCRIPTION}


def _expected(**properties: Any) -> dict[str, Any]:
    return dict(schemas.expected_json_schema("n", "d", {"type": "object", **properties}))


def test_a_tool_without_arguments_has_the_heartbeat_alone() -> None:
    assert schemas.expected_json_schema("n", "d", {}) == {
        "name": "n",
        "description": "d",
        "parameters": {
            "type": "object",
            "properties": {"request_heartbeat": BEAT},
            "required": ["request_heartbeat"],
            "additionalProperties": False,
        },
    }


def test_references_are_resolved_and_the_definitions_stay() -> None:
    point = {"type": "object", "properties": {"x": {"type": "number"}}}
    stored = _expected(
        **{"$defs": {"P": point}, "properties": {"p": {"$ref": "#/$defs/P", "title": "here"}}}
    )["parameters"]
    closed = {**point, "additionalProperties": False}
    assert stored["$defs"] == {"P": closed}
    assert stored["properties"]["p"] == {**closed, "title": "here"}


def test_alternatives_of_one_type_become_the_more_specific_one() -> None:
    options = [{"type": "string"}, {"type": "string", "format": "date"}, {"type": "null"}]
    stored = _expected(properties={"a": {"anyOf": options}})["parameters"]
    assert stored["properties"]["a"]["anyOf"] == options[1:]


def test_a_schema_that_refers_to_itself_ends() -> None:
    tree = {"type": "object", "properties": {"kids": {"$ref": "#/$defs/T"}}}
    assert _expected(**{"$defs": {"T": tree}, "properties": {"t": {"$ref": "#/$defs/T"}}})


def test_the_schema_that_came_is_not_changed() -> None:
    source = {"type": "object", "properties": {"o": {"type": "object"}}, "required": []}
    before = repr(source)
    schemas.expected_json_schema("n", "d", source)
    assert repr(source) == before


def test_lettas_notes_are_not_part_of_the_comparison() -> None:
    ours = schemas.expected_json_schema("n", "d", {})
    stored = {**ours, "mcp:SCHEMA_STATUS": "STRICT_COMPLIANT", "mcp:SCHEMA_WARNINGS": []}
    assert schemas.comparable(stored) == ours
    assert schemas.digest(stored) == schemas.digest(ours)


def test_the_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert schemas.digest({"a": 1, "b": [1, 2]}) == schemas.digest({"b": [1, 2], "a": 1})


@pytest.mark.parametrize(
    "other",
    [
        ("m", "d", {}),
        ("n", "e", {}),
        ("n", "d", {"properties": {"a": {"type": "string"}}}),
        ("n", "d", {"description": "x"}),
    ],
)
def test_any_other_tool_has_another_digest(other: tuple[str, str, dict[str, Any]]) -> None:
    assert schemas.digest(schemas.expected_json_schema("n", "d", {})) != schemas.digest(
        schemas.expected_json_schema(*other)
    )
