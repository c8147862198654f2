"""Find the ways in which a tool of the agent's set could message the agent, before it is loaded.

Looked at is what a file says for itself and through its helpers: an import of what sends messages,
or an address of Letta's API. Helpers are the files beside it and modules from anywhere but the
standard library and the installed packages. Who wants to hide it can; whoever writes it by mistake,
as in the incident, is told at the start and not after two days.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

SENDERS: Final = (
    "letta",
    "letta_client",
    "han_solo.bridge",
    "han_solo.cli",
    "han_solo.daemon",
    "han_solo.embedded",
    "han_solo.job_context",
    "han_solo.letta.gateway",
    "han_solo.letta.link",
    "han_solo.letta.messages",
    "han_solo.reconcile.switch",
    "han_solo.turns",
)
"""Modules through which a message can be sent; what lies below them is meant too. A test says that
no module of the engine that has a gateway is missing."""

_ADDRESS: Final = "/v1/agents"

_ENGINE: Final = "han_solo"


def find_senders(path: Path) -> Iterator[str]:
    """Yield, for each way that a file has to message an agent, where it is and what it is.

    Args:
        path: a module of an extension package that was loaded; its helpers are read too.
    """
    seen: set[Path] = set()
    todo = [path]
    while todo:
        file = todo.pop()
        if file in seen:
            continue
        seen.add(file)
        for node in _walk(ast.parse(file.read_bytes(), str(file))):
            match node:
                case ast.Constant(value=str() as text) if _ADDRESS in text:
                    yield f"{file}:{node.lineno} has an address of Letta's API in it"
                case ast.ImportFrom(module=module, names=names, level=level) if level:
                    todo += _find_siblings(file.parents[level - 1], module, names)
                case ast.Import() | ast.ImportFrom() | ast.Call():
                    modules = _list_modules(node)
                    if sender := next(filter(_is_sender, modules), None):
                        yield f"{file}:{node.lineno} imports {sender}"
                    todo += [found for name in modules if (found := _find_helper(name))]
                case _:
                    pass


def list_imports(source: str) -> Iterator[str]:
    """Yield the modules that a file imports absolutely at run time, and the names out of them."""
    for node in _walk(ast.parse(source)):
        if not (isinstance(node, ast.ImportFrom) and node.level):
            yield from _list_modules(node)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Walk all that runs: what stands under ``if TYPE_CHECKING`` does not."""
    yield node
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                for other in child.orelse:
                    yield from _walk(other)
            case _:
                yield from _walk(child)


def _list_modules(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str() as module, names=names):
            return [module, *[f"{module}.{alias.name}" for alias in names]]
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str() as module), *_],
        ):
            return [module]
        case _:
            return []


def _find_siblings(folder: Path, module: str | None, names: list[ast.alias]) -> list[Path]:
    """Return the files that a relative import reads: the packages on the way and the module."""
    steps = module.split(".") if module else []
    ways = [folder.joinpath(*steps[: count + 1]) for count in range(len(steps))]
    ways += [folder.joinpath(*steps, alias.name) for alias in names]
    files = [file for way in ways for file in (way.with_suffix(".py"), way / "__init__.py")]
    return [file for file in files if file.is_file()]


def _find_helper(name: str) -> Path | None:
    """Return the file of a module that is neither the engine's nor Python's nor installed."""
    top = name.partition(".")[0]
    if top == _ENGINE or top in sys.stdlib_module_names:
        return None
    loaded = sys.modules.get(name)
    spec = loaded.__spec__ if loaded else None
    if spec is None and name == top:  # imported within a function, which did not run yet
        spec = PathFinder.find_spec(name)
    if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
        return None
    file = Path(str(spec.origin))
    is_installed = any(
        file.is_relative_to(sysconfig.get_path(where)) for where in ("purelib", "platlib")
    )
    return None if is_installed else file


def _is_sender(name: str) -> bool:
    return any(name == sender or name.startswith(f"{sender}.") for sender in SENDERS)
