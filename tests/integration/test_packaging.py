"""The wheel and the editable install carry the same extensions, found by one loader."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import uv

from han_solo import loader

TOP = Path(__file__).resolve().parents[2]
LIST_TOOLS = (
    "import han_solo, json; from han_solo import loader;"
    "print(json.dumps([han_solo.__file__, str(loader.shipped_root()),"
    "[tool.name for tool in loader.load_registry()]]));"
    "from han_solo.incidents import find_page;"
    "print([str(find_page(guard)) for guard in loader.load_registry().guards])"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=TOP,
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_extensions_and_all_data_files(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "han_solo/py.typed" in names
    for folder in ("tools", "guards", "jobs", "launchd"):
        assert any(name.startswith(f"han_solo/_extensions/{folder}/") for name in names), folder
    for path in (TOP / "han_solo").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert str(path.relative_to(TOP)) in names
    for path in (TOP / "tools").glob("*.py"):
        assert f"han_solo/_extensions/tools/{path.name}" in names


def test_the_wheel_claims_no_top_level_name_but_its_own(wheel):
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"han_solo"}


def test_an_installed_wheel_loads_its_own_extensions(wheel, tmp_path):
    target = tmp_path / "site"
    subprocess.run(
        [uv.find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--target", target, wheel],
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", LIST_TOOLS],
        cwd=tmp_path,
        env={"PYTHONPATH": str(target), "HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert str(target) in done.stdout
    assert str(TOP / "tools") not in done.stdout
    names = [tool.name for tool in loader.load_registry()]
    assert all(f'"{name}"' in done.stdout for name in names)
    assert "create_notecard" in names
    pages = done.stdout.splitlines()[-1]
    assert pages.count(str(target / "han_solo" / "_extensions" / "docs" / "incidents")) == len(
        loader.load_registry().guards
    )


def test_an_editable_install_loads_the_checkout_and_no_stale_copy():
    assert loader.shipped_root() == TOP


def test_the_wheel_asks_for_what_the_project_declares(wheel):
    archive = zipfile.ZipFile(wheel)
    name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = archive.read(name).decode()
    assert "Requires-Python: <3.14,>=3.11" in metadata
    assert "Requires-Dist: fastmcp<5,>=4.2" in metadata
    scripts = archive.read(name.replace("METADATA", "entry_points.txt")).decode()
    assert "han-solo = " in scripts
    assert "sync-tools = " in scripts
    assert "switch-model = " in scripts
