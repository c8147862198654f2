"""The scripts: what they say when the machine lacks something, and that the locks are whole."""

import importlib.util
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture
def bare_path(tmp_path):
    """A PATH with a shell and its tools, and no Python at all."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "dirname", "pwd"):
        (folder / name).symlink_to(shutil.which(name))
    return folder


def run_script(name, *arguments, **environment):
    return subprocess.run(
        [TOP / "scripts" / name, *arguments],
        env={"HOME": "/nonexistent", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def load(name):
    spec = importlib.util.spec_from_file_location(name, TOP / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_machine_without_a_fitting_python_is_told_so(bare_path, tmp_path):
    script = (TOP / "scripts" / "_run").read_text(encoding="utf-8")
    folder = tmp_path / "checkout" / "scripts"
    folder.mkdir(parents=True)
    target = folder / "_run"
    target.write_text(script.replace("/usr/bin/python", "/nowhere/python"), encoding="utf-8")
    target.chmod(0o755)
    old = bare_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")  # a Python that is too old
    old.chmod(0o755)
    done = subprocess.run(
        [target, "run", "python"],
        env={"HOME": "/nonexistent", "PATH": str(bare_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no Python 3.11, 3.12 or 3.13 was found" in done.stderr
    assert "HAN_SOLO_PYTHON" in done.stderr


def test_a_named_python_that_does_not_fit_is_refused():
    done = run_script(
        "_run", "run", "python", PATH=os.environ["PATH"], HAN_SOLO_PYTHON="/bin/false"
    )
    assert done.returncode == 2
    assert "HAN_SOLO_PYTHON=/bin/false is not a Python" in done.stderr


def test_wrong_use_of_the_bootstrap_is_one_sentence():
    done = run_script("_run", "nonsense", PATH=os.environ["PATH"])
    assert done.returncode == 2
    assert done.stderr.startswith("error: usage:")


def test_a_first_start_on_a_terminal_shows_one_line_and_no_list_of_packages(capsys):
    bootstrap = load("_bootstrap")
    said = "Resolved 2 packages\\nDownloading big (90.0MiB)\\n + big==1.0\\n + small==2.0\\n"

    done = bootstrap.run(["sh", "-c", f"printf '{said}' >&2; echo noise; exit 3"], show=True)

    out, err = capsys.readouterr()
    assert done.returncode == 3
    assert done.stderr.endswith(" + small==2.0\n")  # kept for the sentence about a failure
    assert (out, "\n" in err) == ("", False)
    assert [piece for piece in err.split("\r\033[K") if piece] == [
        "Resolved 2 packages",
        "Downloading big (90.0MiB)",
    ]


@pytest.mark.parametrize(
    "name", ["up", "test", "bench", "sync-tools", "switch-model", "_run", "compile-locks"]
)
def test_scripts_can_be_run_from_a_checkout(name):
    path = TOP / "scripts" / name
    assert os.access(path, os.X_OK)
    assert path.read_text(encoding="utf-8").startswith("#!/bin/sh")


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_dependency_is_in_the_locks_with_a_hash_and_no_host(lock):
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    text = (TOP / lock).read_text(encoding="utf-8")
    assert "://" not in text
    for requirement in project["project"]["dependencies"]:
        name = requirement.split(">=")[0].split("==")[0]
        assert f"\n{name}==" in text, f"run scripts/compile-locks: {name} is not in {lock}"
    assert text.count("--hash=sha256:") > text.count("==")


def test_ci_runs_the_test_command_of_the_readme():
    ci = (TOP / ".ci" / "run").read_text(encoding="utf-8")
    assert "scripts/test\n" in ci
    assert "scripts/test deep" in ci
    assert "scripts/test" in (TOP / "README.md").read_text(encoding="utf-8")
