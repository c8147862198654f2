"""The JSON schema that Letta stores for an MCP tool, computed from what the tool's server lists.

The reconciler compares the two to find tools whose schema is stale. Letta does not store the
``inputSchema`` as it came: it closes objects, resolves references, merges alternatives and adds a
heartbeat argument. ``expected_json_schema`` does the same, as read in Letta 0.16.8
(``functions/schema_generator.py``) and held to a real server by a contract test.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

HEARTBEAT: Final = "request_heartbeat"
HEARTBEAT_DESCRIPTION: Final = (
    "Request an immediate heartbeat after function execution. You MUST set this value to `True` if "
    "you want to send a follow-up message or run a follow-up tool call (chain multiple tools "
    "together). If set to `False` (the default), then the chain of execution will end immediately "
    "after this function call."
)

MAX_DEPTH: Final = 10
"""How deep Letta resolves references; a schema that refers to itself is cut there."""

_DEFS: Final = "#/$defs/"

Schema = dict[str, Any]


def expected_json_schema(
    name: str, description: str | None, input_schema: Mapping[str, object]
) -> Mapping[str, object]:
    """Return what Letta's ``json_schema`` of the tool should be, apart from its health notes.

    Args:
        name: the tool's name.
        description: the tool's description, as its MCP server lists it.
        input_schema: the tool's ``inputSchema``, as its MCP server lists it.
    """
    parameters: Schema = copy.deepcopy(dict(input_schema))
    parameters.setdefault("type", "object")
    parameters.setdefault("properties", {})
    definitions: dict[str, Any] = parameters.get("$defs") or {}
    for definition in definitions.values():
        if isinstance(definition, dict):
            _close(definition, definitions)
    _close(parameters, definitions)
    parameters.setdefault("required", [])
    for key, value in parameters["properties"].items():
        parameters["properties"][key] = _resolve(value, definitions, 0)
    parameters["properties"][HEARTBEAT] = {
        "type": "boolean",
        "description": HEARTBEAT_DESCRIPTION,
    }
    if HEARTBEAT not in parameters["required"]:
        parameters["required"].append(HEARTBEAT)
    return {"name": name, "description": description, "parameters": parameters}


def comparable(json_schema: Mapping[str, object]) -> Mapping[str, object]:
    """Return a stored ``json_schema`` without Letta's notes on it (``mcp:SCHEMA_STATUS``, ...)."""
    return {key: value for key, value in json_schema.items() if not key.startswith("mcp:")}


def digest(json_schema: Mapping[str, object]) -> str:
    """Return the SHA-256 of a schema's comparable part, the same however its keys are ordered."""
    text = json.dumps(
        comparable(json_schema), sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _close(node: Schema, definitions: Mapping[str, Any]) -> None:
    """Close objects to further properties and give references the type they refer to, in place."""
    if node.get("type") == "object":
        node.setdefault("additionalProperties", False)
    for value in (node.get("properties") or {}).values():
        if "$ref" in value:
            value.setdefault("type", _type_of(value["$ref"], definitions))
        elif isinstance(value, dict):
            for part in _parts(value, definitions):
                _close(part, definitions)
    items = node.get("items")
    if isinstance(items, dict) and items.get("type") == "object":
        _close(items, definitions)


def _parts(value: Schema, definitions: Mapping[str, Any]) -> Iterator[Schema]:
    """Yield the objects inside a property that Letta looks into: itself, its items, its options."""
    if value.get("type") == "object":
        yield value
    inside = [value["items"]] if value.get("type") == "array" and "items" in value else []
    for part in [*inside, *value.get("anyOf", ())]:
        if not isinstance(part, dict):
            continue
        if "$ref" in part:
            part.setdefault("type", _type_of(part["$ref"], definitions))
        if part.get("type") == "object":
            yield part


def _type_of(reference: str, definitions: Mapping[str, Any]) -> str:
    if reference.startswith(_DEFS):
        definition = definitions.get(reference.rpartition("/")[2], {})
        if "type" in definition:
            found: str = definition["type"]
            return found
    return "object"


def _resolve(node: Any, definitions: Mapping[str, Any], depth: int) -> Any:
    """Return the node with every reference into ``$defs`` replaced by what it refers to."""
    if depth > MAX_DEPTH or not isinstance(node, dict):
        return node
    resolved: Schema = dict(node)
    reference = resolved.get("$ref")
    if isinstance(reference, str) and reference.startswith(_DEFS):
        definition = definitions.get(reference.rpartition("/")[2])
        if definition is not None:
            del resolved["$ref"]
            # What stands beside the reference wins over what it refers to.
            resolved = _resolve({**definition, **resolved}, definitions, depth + 1)
    if "anyOf" in resolved:
        options = [_resolve(option, definitions, depth + 1) for option in resolved["anyOf"]]
        resolved["anyOf"] = _without_duplicates(options)
    if isinstance(resolved.get("properties"), dict):
        resolved["properties"] = {
            key: _resolve(value, definitions, depth + 1)
            for key, value in resolved["properties"].items()
        }
    if "items" in resolved:
        resolved["items"] = _resolve(resolved["items"], definitions, depth + 1)
    return resolved


def _without_duplicates(options: list[Any]) -> list[Any]:
    """Merge alternatives as Letta does: of one type only the more specific stays."""
    kept: list[Any] = []
    for option in options:
        if not isinstance(option, dict):
            if option not in kept:
                kept.append(option)
            continue
        if not any(_absorbs(kept, index, option) for index in range(len(kept))):
            kept.append(option)
    return kept


def _absorbs(kept: list[Any], index: int, option: Schema) -> bool:
    """Say whether the kept option stands for the new one; replaces it by the more specific."""
    existing = kept[index]
    if not isinstance(existing, dict):
        return False
    if option == existing:
        return True
    if not option.get("type") or option["type"] != existing.get("type"):
        return False
    new_format, old_format = option.get("format"), existing.get("format")
    if new_format and old_format and new_format != old_format:
        return False
    is_richer = new_format == old_format and len(option) >= len(existing)
    if is_richer or (new_format and not old_format):
        kept[index] = option
    return True
