"""The public front, and the rules that hold over the whole tree."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import han_solo

TOP = Path(han_solo.__file__).resolve().parent.parent
MAX_LINES = 600
SOURCES = sorted(
    path
    for folder in ("han_solo", "tools", "guards", "jobs", "scripts", "tests")
    for path in (TOP / folder).rglob("*.py")
)


def test_the_public_surface_is_what_extensions_may_use():
    assert sorted(han_solo.__all__) == [
        "BlockContext",
        "CheckContext",
        "Daily",
        "Evidence",
        "Finding",
        "HanSoloError",
        "Hourly",
        "JobContext",
        "MemoryContext",
        "OperatorContext",
        "Principal",
        "RemedyContext",
        "guard",
        "job",
        "tool",
    ]


def test_importing_the_front_loads_nothing_heavy():
    code = (
        "import sys, han_solo, han_solo.loader;"
        "print([m for m in ('letta_client', 'fastmcp', 'asyncpg', 'uvicorn', 'rich', 'httpx')"
        " if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(TOP)))
def test_no_file_is_longer_than_the_house_allows(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if path.relative_to(TOP).parts[0] not in {"tests", "scripts"}],
    ids=lambda path: str(path.relative_to(TOP)),
)
def test_every_module_says_why_it_exists(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree) or not tree.body


@pytest.mark.parametrize("folder", ["tools", "guards", "jobs"])
def test_the_engine_never_imports_an_extension_package(folder):
    for path in (TOP / "han_solo").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            assert not [name for name in names if name.split(".")[0] == folder], path
