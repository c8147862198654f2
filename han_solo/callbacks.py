"""Find the ways in which a tool of the agent's set could message the agent, before it is loaded.

Looked at is what a file says for itself and through the helpers beside it: an import of what sends
messages, or an address of Letta's API. Who wants to hide it can; whoever writes it by mistake, as
in the incident, is told at the start and not after two days.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SENDERS: Final = (
    "letta",
    "letta_client",
    "han_solo.bridge",
    "han_solo.daemon",
    "han_solo.job_context",
    "han_solo.letta.gateway",
    "han_solo.letta.link",
    "han_solo.letta.messages",
    "han_solo.turns",
)
"""Modules through which a message can be sent; what lies below them is meant too."""

_ADDRESS: Final = "/v1/agents"


def find_senders(path: Path, seen: frozenset[Path] = frozenset()) -> Iterator[str]:
    """Yield, for each way that a file has to message an agent, where it is and what it is.

    Args:
        path: a module of an extension package; helpers that it imports relatively are read too.
        seen: files that were read already.
    """
    if path in seen or not path.is_file():
        return
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for node in ast.walk(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=module, names=names, level=0):
                modules = [str(module), *[f"{module}.{alias.name}" for alias in names]]
            case ast.ImportFrom(module=module, names=names):
                yield from _of_siblings(path, module, names, seen | {path})
                continue
            case ast.Constant(value=str() as text) if _ADDRESS in text:
                yield f"{path}:{node.lineno} has an address of Letta's API in it"
                continue
            case _:
                continue
        if sender := next(filter(_is_sender, modules), None):
            yield f"{path}:{node.lineno} imports {sender}"


def _of_siblings(
    path: Path, module: str | None, names: list[ast.alias], seen: frozenset[Path]
) -> Iterator[str]:
    stems = [module.split(".")[0]] if module else [alias.name for alias in names]
    for stem in stems:
        yield from find_senders(path.with_name(f"{stem}.py"), seen)


def _is_sender(name: str) -> bool:
    return any(name == sender or name.startswith(f"{sender}.") for sender in SENDERS)
