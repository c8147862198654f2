"""Find and load the extension packages: ``tools/``, ``guards/``, ``jobs/``.

They are loaded from files as ``han_solo_tools``, ``han_solo_guards`` and ``han_solo_jobs``; an
operator's own directories (``HAN_SOLO_EXTENSIONS``), each with any of the three folders in it, are
loaded beside them. A file dropped into a folder is loaded; ``_helpers.py`` are imported by their
siblings only. A file that does not load stops the process.

The shipped folders are found from this module's own path: in a checkout (editable install) they lie
beside ``han_solo/``, in a wheel below it. Site-packages are not asked, since hatchling copies
force-included files there for an editable install too, and those go stale.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final, Literal

from .callbacks import find_senders
from .declare import GUARD_SPECS, JOB_SPECS, MODULE_SPECS
from .errors import DeclarationError, HanSoloError
from .registry import Registry, build_registry

Kind = Literal["tools", "guards", "jobs"]
KINDS: Final[tuple[Kind, ...]] = ("tools", "guards", "jobs")

_PACKAGE = Path(__file__).resolve().parent


def shipped_root() -> Path:
    """Return the directory that holds the shipped ``tools/``, ``guards/``, ``jobs/``."""
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "tools").is_dir():
        return checkout
    return _PACKAGE / "_extensions"


def load_registry(extensions: Iterable[Path] = ()) -> Registry:
    """Load every extension package and build the registry.

    Args:
        extensions: an operator's own directories, in order.

    Raises:
        DeclarationError: a file does not load, a name is doubled, or a directory is not safe.
    """
    roots = [shipped_root()]
    for extension in extensions:
        root = extension.expanduser().resolve()
        if not root.is_dir():
            raise DeclarationError(
                f"The extension directory {root} does not exist.",
                hint="Mend HAN_SOLO_EXTENSIONS.",
            )
        refuse_writable_by_others(root)
        roots.append(root)
    by_kind = {kind: [m for root in roots for m in _load_kind(root, kind)] for kind in KINDS}
    modules = [module for loaded in by_kind.values() for module in loaded]
    for module in by_kind["guards"]:
        _require_one(module, GUARD_SPECS, "guard")
    for module in by_kind["jobs"]:
        _require_one(module, JOB_SPECS, "job")
    for module in modules:
        _refuse_callbacks(module)
    return build_registry(
        tools=[spec for module in modules for spec in vars(module).get(MODULE_SPECS, ())],
        guards=[spec for module in modules for spec in vars(module).get(GUARD_SPECS, ())],
        jobs=[spec for module in modules for spec in vars(module).get(JOB_SPECS, ())],
    )


def _refuse_callbacks(module: ModuleType) -> None:
    """Refuse a tool of the agent's set that could message the agent while the agent waits."""
    tools = [spec.name for spec in vars(module).get(MODULE_SPECS, ()) if spec.audience == "agent"]
    assert module.__file__
    if tools and (found := next(find_senders(Path(module.__file__)), None)):
        raise DeclarationError(
            f"{found}, and {', '.join(tools)} stands in the agent's set: a tool that messages the "
            "agent while the agent waits for it is a deadlock.",
            hint="Give the tool audience='operator' in a file of its own, or have it return what "
            "it knows (docs/incidents/callback-deadlock.md).",
        )


def _require_one(module: ModuleType, attribute: str, kind: str) -> None:
    """Refuse a file without its guard or job: someone believes that it watches, or runs."""
    count = len(vars(module).get(attribute, ()))
    if count != 1:
        raise DeclarationError(
            f"{module.__file__} has {count or 'no'} {kind}s; one module is one {kind}.",
            hint=f"Decorate one function with @{kind}, or begin a helper's name with _.",
        )


def refuse_writable_by_others(root: Path) -> None:
    """Refuse a directory that others may write, or that someone else than us or root owns.

    What lies there is run with our rights. A writable parent counts too (unless it is sticky):
    whoever may write there can put another directory in this one's place.

    Raises:
        DeclarationError: names the directory and the command that mends it.
    """
    trusted = {0, os.geteuid()}
    for path in [root, *root.parents]:
        _refuse_unsafe(path, path.stat(), trusted, sticky_will_do=path != root)
    for kind in KINDS:
        folder = root / kind
        for path in sorted([folder, *folder.rglob("*")] if folder.exists() else ()):
            if not path.exists():
                raise DeclarationError(f"{path} is a link to nothing.", hint="Take it away.")
            _refuse_unsafe(path, path.stat(), trusted, sticky_will_do=False)
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                raise DeclarationError(
                    f"{path} leads out of {root}, where nobody looked who may write.",
                    hint="Put the file itself there, or add the other directory to "
                    "HAN_SOLO_EXTENSIONS.",
                )


def _refuse_unsafe(
    path: Path, status: os.stat_result, trusted: set[int], *, sticky_will_do: bool
) -> None:
    if status.st_uid not in trusted:
        raise DeclarationError(
            f"{path} belongs to another user, and what lies there would run as you.",
            hint=f"Take it over (chown -R $(id -un) {path}) or remove it from HAN_SOLO_EXTENSIONS.",
        )
    writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if writable and not (sticky_will_do and status.st_mode & stat.S_ISVTX):
        raise DeclarationError(
            f"{path} may be written by others, and what lies there would run as you.",
            hint=f"Close it: chmod -R go-w {path}",
        )


def _load_kind(root: Path, kind: Kind) -> Iterator[ModuleType]:
    folder = root / kind
    if not folder.is_dir():
        return
    package = _package_name(root, kind)
    _register_package(package, folder)
    for path in sorted(folder.glob("*.py")):
        if not path.name.startswith("_"):
            yield _load_file(f"{package}.{path.stem}", path)


def _package_name(root: Path, kind: Kind) -> str:
    """Return ``han_solo_tools`` and the like; an operator's gets a suffix from its path."""
    name = f"han_solo_{kind}"
    if root == shipped_root():
        return name
    return f"{name}_{hashlib.sha256(str(root).encode()).hexdigest()[:8]}"


def _register_package(name: str, folder: Path) -> None:
    """Make the folder a package, so that siblings can import each other relatively.

    What an earlier load left of it is forgotten: helpers are read anew like everything else.
    """
    for loaded in [module for module in sys.modules if module.startswith(f"{name}.")]:
        del sys.modules[loaded]
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    sys.modules[name] = importlib.util.module_from_spec(spec)


def _load_file(name: str, path: Path) -> ModuleType:
    if name in sys.modules:  # a sibling imported it already; a second copy would be another module
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except HanSoloError:
        raise
    except (Exception, SystemExit) as error:
        raise DeclarationError(
            f"{path} does not load: {type(error).__name__}: {error}.",
            hint="Mend the file or take it out of the folder; nothing was started.",
        ) from error
    return module
