"""The block commands' answers as JSON. Names and shapes are for scripts, so they stay."""

from __future__ import annotations

from typing import Any

from ..blocks.model import BlockState, BlockWrite, Event, Inspection, Version, VersionEntry


def of_state(state: BlockState, last: VersionEntry | None) -> dict[str, Any]:
    """Describe a block; ``version`` is null while Letta holds another text than the last one."""
    return {
        "label": state.label,
        "block_id": state.view.id,
        "description": state.view.description,
        "length": state.length,
        "limit": state.limit,
        "read_only": state.view.read_only,
        "writers": list(state.writers),
        "sha256": state.sha256,
        "version": state.version,
        "last": of_entry(last) if last else None,
    }


def of_entry(entry: VersionEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "label": entry.label,
        "block_id": entry.block_id,
        "length": entry.length,
        "sha256": entry.sha256,
        "author": entry.author,
        "author_kind": entry.author_kind,
        "reason": entry.reason,
        "origin": entry.origin,
        "source": entry.source,
        "created_at": entry.created_at.isoformat(),
    }


def of_version(version: Version) -> dict[str, Any]:
    return {**of_entry(version), "value": version.value}


def of_write(written: BlockWrite) -> dict[str, Any]:
    return {
        "label": written.label,
        "block_id": written.block_id,
        "version": written.version,
        "changed": written.changed,
        "sha256": written.sha256,
        "length": written.length,
        "limit": written.limit,
        "events": [of_event(event) for event in written.events],
    }


def of_inspection(inspection: Inspection) -> dict[str, Any]:
    return {
        "label": inspection.label,
        "block_id": inspection.block_id,
        "version": inspection.version,
        "sha256": inspection.sha256,
        "length": inspection.length,
        "limit": inspection.limit,
        "events": [of_event(event) for event in inspection.events],
    }


def of_event(event: Event) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "sentence": event.sentence,
        "version": event.version,
        "undone": list(event.undone),
    }
